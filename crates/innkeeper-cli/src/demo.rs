//! The demo: a chain of tool calls on real servers.

mod samples;
mod script;

mod builtin_chain;
mod npm_chain;
#[cfg(test)]
mod tests;

pub(crate) use script::{CompletedStep, ScriptError, ToolCaller};

use std::io;
use std::path::Path;

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DemoServers {
    /// The two built-in servers.
    BuiltIn,
    /// Two reference servers that `npx` downloads.
    Npm,
}

/// A prepared demo. Dropping the demo removes its files.
#[derive(Debug)]
pub(crate) struct Demo {
    servers: DemoServers,
    folder: tempfile::TempDir,
}

impl Demo {
    /// Writes the sample files to a temporary directory.
    pub(crate) fn prepare(servers: DemoServers) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("innkeeper-demo-").tempdir()?;
        samples::write(&dir.path().join("files"))?;
        Ok(Self { servers, folder: dir })
    }

    /// Returns the configuration of the demo; `program` is the path of this executable.
    pub(crate) fn config(&self, program: &Path) -> Value {
        let files = self.folder.path().join("files");
        let notes = self.folder.path().join("notes.jsonl");
        match self.servers {
            DemoServers::BuiltIn => json!({ "servers": {
                "files": { "command": program, "args": ["__server", "files", files] },
                // The demo kills this server during a call.
                "notes": {
                    "command": program,
                    "args": ["__server", "notes", notes],
                    "restart": { "onFailure": { "max": 1 } },
                },
            }}),
            DemoServers::Npm => json!({ "servers": {
                "filesystem": {
                    "command": "npx",
                    "args": ["-y", "@modelcontextprotocol/server-filesystem", files],
                },
                "everything": {
                    "command": "npx",
                    "args": ["-y", "@modelcontextprotocol/server-everything"],
                },
            }}),
        }
    }

    /// Runs the chain and reports each completed step to the callback.
    ///
    /// # Errors
    ///
    /// A call fails, or a result is not the result that the chain needs. The chain stops there.
    pub(crate) async fn run(
        &self,
        runner: &mut impl ToolCaller,
        on_step: &mut impl FnMut(&CompletedStep),
    ) -> Result<usize, ScriptError> {
        match self.servers {
            DemoServers::BuiltIn => script::run_steps(builtin_chain::CHAIN, runner, on_step).await,
            DemoServers::Npm => script::run_steps(npm_chain::CHAIN, runner, on_step).await,
        }
    }
}
