//! `demo`: the main job with nothing configured, a chain of calls over real servers.

mod samples;
mod script;

mod builtin_chain;
mod npm_chain;
#[cfg(test)]
mod tests;

pub(crate) use script::{Done, Runner, ScriptError};

use std::io;
use std::path::Path;

use serde_json::{Value, json};

/// Which servers the demo runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    /// The two inside this program.
    BuiltIn,
    /// Two reference servers that `npx` fetches.
    Npm,
}

/// A prepared demo. Its files go when it is dropped.
#[derive(Debug)]
pub(crate) struct Demo {
    cast: Cast,
    folder: tempfile::TempDir,
}

impl Demo {
    /// Writes the sample files into a folder of their own.
    pub(crate) fn prepare(cast: Cast) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("innkeeper-demo-").tempdir()?;
        samples::write(&folder.path().join("files"))?;
        Ok(Self { cast, folder })
    }

    /// The `mcp.json` of the demo; `program` is this program.
    pub(crate) fn config(&self, program: &Path) -> Value {
        let files = self.folder.path().join("files");
        let notes = self.folder.path().join("notes.jsonl");
        match self.cast {
            Cast::BuiltIn => json!({ "servers": {
                "files": { "command": program, "args": ["__server", "files", files] },
                "notes": { "command": program, "args": ["__server", "notes", notes] },
            }}),
            Cast::Npm => json!({ "servers": {
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

    /// Runs the whole chain; `seen` is told of each call as it is done.
    ///
    /// # Errors
    ///
    /// The first call that fails, or whose result is not what the chain needs.
    pub(crate) async fn run(
        &self,
        runner: &mut impl Runner,
        seen: &mut impl FnMut(&Done),
    ) -> Result<usize, ScriptError> {
        match self.cast {
            Cast::BuiltIn => script::run(builtin_chain::CHAIN, runner, seen).await,
            Cast::Npm => script::run(npm_chain::CHAIN, runner, seen).await,
        }
    }
}
