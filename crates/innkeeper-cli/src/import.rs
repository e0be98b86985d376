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
mod opencode;
mod other;
mod vscode;
mod windsurf;
mod zed;

mod format;

mod collect;
#[cfg(test)]
mod tests;

pub(crate) use document::ImportError;
pub(crate) use source_file::BaseDirectories;

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
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
    /// Windsurf
    Windsurf,
    /// opencode
    Opencode,
    /// Zed
    Zed,
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
            Self::Windsurf => "windsurf",
            Self::Opencode => "opencode",
            Self::Zed => "zed",
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

    /// Imports one file of any host. Adds the error of a missing or invalid file.
    fn add_path(&mut self, path: &Path, directories: &BaseDirectories) {
        let read = document::read_path(path).and_then(|(document, files)| {
            for file in files {
                collect::collect_file(&file, &document, directories, self)?;
            }
            Ok(())
        });
        match read {
            Ok(()) => self.files.push(path.display().to_string()),
            Err(error) => self.errors.push(error),
        }
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

/// The files to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ImportSource {
    /// The files of one host.
    Host(SourceHost),
    /// One file, whose host is detected.
    File(PathBuf),
}

impl ImportSource {
    /// Parses the name of a host, or the path of a file.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(host) = SourceHost::from_str(text, true) {
            return Ok(Self::Host(host));
        }
        if text.contains(['/', '\\', '.']) || Path::new(text).exists() {
            return Ok(Self::File(PathBuf::from(text)));
        }
        let names: Vec<&str> =
            SourceHost::value_variants().iter().map(|host| host.as_str()).collect();
        Err(format!("expected the path of a file, or one of {}", names.join(", ")))
    }
}

/// The parser of [`ImportSource`] for the command line; completions list the hosts.
#[derive(Clone, Debug)]
pub(crate) struct ImportSourceParser;

impl TypedValueParser for ImportSourceParser {
    type Value = ImportSource;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<ImportSource, clap::Error> {
        let parser = StringValueParser::new().try_map(|text| ImportSource::parse(&text));
        parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let hosts = SourceHost::value_variants().iter();
        Some(Box::new(hosts.filter_map(ValueEnum::to_possible_value)))
    }
}

/// Imports the files of one host or of all hosts, or one file. A file that cannot be imported does
/// not affect the other files.
///
/// # Errors
///
/// No file exists.
pub(crate) fn import(
    source: Option<&ImportSource>,
    directories: &BaseDirectories,
) -> Result<ImportResult, ImportError> {
    let mut imported = ImportResult::default();
    let hosts = match source {
        Some(ImportSource::Host(host)) => std::slice::from_ref(host),
        Some(ImportSource::File(path)) => {
            imported.add_path(path, directories);
            return Ok(imported);
        }
        None => SourceHost::value_variants(),
    };
    for host in hosts {
        for file in source_file::source_files(*host, directories) {
            imported.add_file(&file, directories);
        }
    }
    if imported.files.is_empty() && imported.errors.is_empty() {
        return Err(ImportError::not_found(hosts, directories));
    }
    Ok(imported)
}
