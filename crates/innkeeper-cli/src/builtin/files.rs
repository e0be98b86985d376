//! The files server: reads, writes and searches below one folder and nowhere else.

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

use super::service::{Complaint, Identity, Object, Produced, Service};
use root::Root;

/// A folder that is served.
#[derive(Debug)]
pub(crate) struct Files {
    root: Root,
}

impl Files {
    /// Serves a folder.
    ///
    /// # Errors
    ///
    /// It is not there, or not a folder.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self { root: Root::open(folder)? })
    }
}

impl Service for Files {
    fn identity(&self) -> Identity {
        Identity {
            name: "innkeeper-files",
            title: "Files",
            instructions: "Reads, writes and searches the files of one folder. Paths are \
                           relative to that folder; `.` is the folder itself.",
        }
    }

    fn tools(&self) -> Vec<Value> {
        tools::all()
    }

    fn call(&mut self, tool: &str, arguments: Object) -> Option<Result<Produced, Complaint>> {
        tools::call(&self.root, tool, arguments)
    }

    fn resources(&mut self) -> Result<Vec<Value>, Complaint> {
        resources::list(&self.root).map_err(|error| error.in_words())
    }

    fn resource_templates(&self) -> Vec<Value> {
        Vec::new()
    }

    fn read(&mut self, uri: &str) -> Option<Result<Value, Complaint>> {
        resources::read(&self.root, uri)
    }

    fn prompts(&self) -> Vec<Value> {
        Vec::new()
    }

    fn prompt(&mut self, _: &str, _: Object) -> Option<Result<Value, Complaint>> {
        None
    }
}
