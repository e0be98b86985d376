//! `import`: an `mcp.json` made from the files of another host, with word of all that was lost.

mod place;
mod read;

mod entry;
mod reach;
mod variables;

mod claude;
mod codex;
mod cursor;
mod gemini;
mod vscode;

mod collect;
#[cfg(test)]
mod tests;

pub(crate) use place::Places;
pub(crate) use read::ImportError;

use std::fmt;

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use place::Program;

/// The hosts whose files can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
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

impl Dialect {
    /// The word that stands for it on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Vscode => "vscode",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
            Self::Codex => "codex",
        }
    }
}

/// What was read: servers in our words, and everything that needs saying about them.
#[derive(Debug, Default)]
pub(crate) struct Imported {
    servers: Map<String, Value>,
    /// The program and the name there of every server that is kept.
    origins: Vec<(Program, String)>,
    /// In the order of the files and of the servers in them.
    pub(crate) notes: Vec<Note>,
}

impl Imported {
    /// The whole `mcp.json`.
    pub(crate) fn document(&self) -> Value {
        json!({ "servers": self.servers })
    }
}

/// Something that could not be carried over as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    file: String,
    server: Option<String>,
    text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Some(server) => write!(f, "`{}`: server `{server}`: {}", self.file, self.text),
            None => write!(f, "`{}`: {}", self.file, self.text),
        }
    }
}

/// Reads the files of one host, or of all hosts.
///
/// # Errors
///
/// A file that is there but cannot be read or understood; no file at all.
pub(crate) fn import(dialect: Option<Dialect>, places: &Places) -> Result<Imported, ImportError> {
    let all = Dialect::value_variants();
    let dialects = dialect.as_ref().map_or(all, std::slice::from_ref);
    let mut imported = Imported::default();
    let mut found_any = false;
    for dialect in dialects {
        for file in place::files(*dialect, places) {
            if let Some(document) = read::document(&file)? {
                found_any = true;
                collect::file(&file, &document, places, &mut imported)?;
            }
        }
    }
    if found_any { Ok(imported) } else { Err(ImportError::nothing(dialects, places)) }
}
