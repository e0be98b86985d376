//! The files server: reads, writes and searches files in one directory.

mod root;
mod walk;

mod operations;
mod tools;

mod resources;
#[cfg(test)]
mod tests;
mod uri;

use std::io;
use std::path::Path;

use serde_json::Value;

use super::service::{FailureMessage, JsonObject, ServerIdentity, Service, ToolOutput};
use root::RootDirectory;

#[derive(Debug)]
pub(crate) struct FilesService {
    root: RootDirectory,
}

impl FilesService {
    /// Opens a directory.
    ///
    /// # Errors
    ///
    /// The directory does not exist, or the path is not a directory.
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        Ok(Self { root: RootDirectory::open(dir)? })
    }
}

impl Service for FilesService {
    fn identity(&self) -> ServerIdentity {
        ServerIdentity {
            name: "innkeeper-files",
            title: "Files",
            instructions: "Reads, writes and searches the files of one folder. Paths are \
                           relative to that folder; `.` is the folder itself.",
        }
    }

    fn tools(&self) -> Vec<Value> {
        tools::definitions()
    }

    fn call_tool(
        &mut self,
        tool: &str,
        arguments: JsonObject,
    ) -> Option<Result<ToolOutput, FailureMessage>> {
        tools::call_tool(&self.root, tool, arguments)
    }

    fn resources(&mut self) -> Result<Vec<Value>, FailureMessage> {
        resources::list(&self.root).map_err(|error| error.describe())
    }

    fn resource_templates(&self) -> Vec<Value> {
        Vec::new()
    }

    fn read_resource(&mut self, uri: &str) -> Option<Result<Value, FailureMessage>> {
        resources::read(&self.root, uri)
    }

    fn prompts(&self) -> Vec<Value> {
        Vec::new()
    }

    fn get_prompt(&mut self, _: &str, _: JsonObject) -> Option<Result<Value, FailureMessage>> {
        None
    }
}
