//! Conversion of other hosts' configuration to `mcp.json`, with notes on losses.

mod document;
mod source_file;

mod entry;
mod transport;
mod variables;

mod claude;
mod codex;
mod cursor;
mod gemini;
mod vscode;

mod collect;
#[cfg(test)]
mod tests;

pub(crate) use document::ImportError;
pub(crate) use source_file::BaseDirectories;

use std::fmt;

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use source_file::{SourceFile, SourceProgram};

/// A host whose configuration files can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SourceHost {
    /// Claude Code and Claude Desktop
    Claude,
    /// Visual Studio Code
    Vscode,
    /// Cursor
    Cursor,
    /// Gemini CLI
    Gemini,
    /// Codex CLI
    Codex,
}

impl SourceHost {
    /// Returns the name on the command line.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Vscode => "vscode",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
            Self::Codex => "codex",
        }
    }
}

/// The imported servers with notes.
#[derive(Debug, Default)]
pub(crate) struct ImportResult {
    servers: Map<String, Value>,
    /// Program and original name of each imported server.
    origins: Vec<(SourceProgram, String)>,
    /// Notes in the order of the files and their servers.
    pub(crate) notes: Vec<ImportNote>,
    /// Files that were read, as shown to the user.
    pub(crate) files: Vec<String>,
    /// Errors of the files that cannot be imported.
    pub(crate) errors: Vec<ImportError>,
}

impl ImportResult {
    /// Returns the complete `mcp.json`.
    pub(crate) fn document(&self) -> Value {
        json!({ "servers": self.servers })
    }

    /// Returns whether no server was imported.
    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Imports one file, if the file exists. Adds the error of an invalid file.
    fn add_file(&mut self, file: &SourceFile, directories: &BaseDirectories) {
        let read = document::read_document(file).and_then(|document| match document {
            Some(document) => {
                collect::collect_file(file, &document, directories, self)?;
                Ok(true)
            }
            None => Ok(false),
        });
        // Two scopes can share a file.
        match read {
            Ok(true) if !self.files.contains(&file.display_path) => {
                self.files.push(file.display_path.clone());
            }
            Ok(_) => {}
            Err(error)
                if self.errors.iter().all(|other| other.to_string() != error.to_string()) =>
            {
                self.errors.push(error);
            }
            Err(_) => {}
        }
    }
}

/// A note on a setting that was changed or not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImportNote {
    file: String,
    server: Option<String>,
    text: String,
}

impl fmt::Display for ImportNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Some(server) => write!(f, "`{}`: server `{server}`: {}", self.file, self.text),
            None => write!(f, "`{}`: {}", self.file, self.text),
        }
    }
}

/// Imports the files of one host, or of all hosts. A file that cannot be imported does not affect
/// the other files.
///
/// # Errors
///
/// No file exists.
pub(crate) fn import(
    dialect: Option<SourceHost>,
    directories: &BaseDirectories,
) -> Result<ImportResult, ImportError> {
    let all = SourceHost::value_variants();
    let dialects = dialect.as_ref().map_or(all, std::slice::from_ref);
    let mut imported = ImportResult::default();
    for dialect in dialects {
        for file in source_file::source_files(*dialect, directories) {
            imported.add_file(&file, directories);
        }
    }
    if imported.files.is_empty() && imported.errors.is_empty() {
        return Err(ImportError::not_found(dialects, directories));
    }
    Ok(imported)
}
