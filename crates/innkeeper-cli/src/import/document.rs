//! Reads a configuration file of another host as JSON.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use super::source_file::{self, BaseDirectories, ConfigScope, SourceFile};
use super::{SourceHost, format};
use crate::input_file;

/// Maximum number of bytes in a file; a file that also contains the host's history has tens of MiB.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Why the files of a host cannot be imported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    #[error("no configuration of {hosts} found")]
    NotFound {
        hosts: String,
        /// Paths that were searched.
        searched_files: Vec<String>,
    },
    #[error("cannot read `{file}`")]
    Unreadable { file: String, source: io::Error },
    #[error("`{file}` is larger than {} MiB", MAX_FILE_BYTES >> 20)]
    TooLarge { file: String },
    #[error("cannot parse `{file}`")]
    Malformed { file: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("`{file}` is not a configuration of a known host")]
    UnknownFormat { file: String },
    #[error("`{file}` is YAML, which innkeeper does not read; convert the file to JSON first")]
    Yaml { file: String },
    #[error("`{file}`: {subject} must be an object")]
    NotAnObject {
        file: String,
        /// The key in back-ticks, or a description of the value.
        subject: String,
    },
}

impl ImportError {
    pub(super) fn not_found(dialects: &[SourceHost], directories: &BaseDirectories) -> Self {
        let hosts: Vec<_> = dialects.iter().map(|host| format!("`{}`", host.as_str())).collect();
        let mut searched_files: Vec<_> = dialects
            .iter()
            .flat_map(|dialect| source_file::source_files(*dialect, directories))
            .map(|file| file.display_path)
            .collect();
        searched_files.dedup();
        Self::NotFound { hosts: hosts.join(", "), searched_files }
    }
}

/// Reads a file as one JSON value; `None` if the file does not exist.
pub(super) fn read_document(file: &SourceFile) -> Result<Option<Value>, ImportError> {
    let display_path = || file.display_path.clone();
    let unreadable = |source| ImportError::Unreadable { file: display_path(), source };
    match fs::metadata(&file.path) {
        Ok(about) if about.is_file() => {}
        // Reading a pipe could block forever.
        Ok(_) => return Err(unreadable(io::Error::other("not a regular file"))),
        Err(error) if is_not_found(&error) => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    }
    let text = match input_file::read(&file.path, MAX_FILE_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return Err(ImportError::TooLarge { file: display_path() });
        }
        Err(error) => return Err(unreadable(error)),
    };
    parse(&text, file.scope)
        .map(Some)
        .map_err(|source| ImportError::Malformed { file: display_path(), source })
}

/// Reads a file of any host; returns the document with the parts of the file to import.
pub(super) fn read_path(path: &Path) -> Result<(Value, Vec<SourceFile>), ImportError> {
    let display_path = path.display().to_string();
    let part = |(host, scope)| SourceFile {
        host,
        scope,
        path: path.to_owned(),
        display_path: display_path.clone(),
    };
    if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
        return Err(ImportError::Yaml { file: display_path });
    }
    // The scope decides only between TOML and JSON here.
    let syntax = match format::is_toml(path) {
        true => (SourceHost::Codex, ConfigScope::Codex),
        false => (SourceHost::Claude, ConfigScope::ClaudeProject),
    };
    let document = read_document(&part(syntax))?.ok_or_else(|| ImportError::Unreadable {
        file: display_path.clone(),
        source: io::ErrorKind::NotFound.into(),
    })?;
    let parts: Vec<_> = format::detect(path, &document).into_iter().map(part).collect();
    if parts.is_empty() {
        return Err(ImportError::UnknownFormat { file: display_path });
    }
    Ok((document, parts))
}

fn is_not_found(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn parse(
    text: &str,
    scope: ConfigScope,
) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if scope == ConfigScope::Codex {
        return Ok(toml::from_str(text)?);
    }
    Ok(jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default())?)
}
