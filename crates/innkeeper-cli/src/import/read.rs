//! From a file to one JSON value, and what can be wrong with it.

use std::fs;
use std::io;

use serde_json::Value;

use super::Dialect;
use super::place::{self, File, Part, Places};
use crate::named;

/// The largest file that is read; the one that also holds a host's history is tens of MiB.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Why another host's files cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    #[error("no configuration of {hosts} was found")]
    Nothing {
        hosts: String,
        /// The files that were looked for.
        looked: Vec<String>,
    },
    #[error("`{file}` cannot be read")]
    Unreadable { file: String, source: io::Error },
    #[error("`{file}` is larger than {} MiB", MAX_FILE_BYTES >> 20)]
    TooLarge { file: String },
    #[error("`{file}` cannot be understood")]
    Malformed { file: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("`{file}`: `{key}` must be an object")]
    NotAnObject { file: String, key: String },
}

impl ImportError {
    pub(super) fn nothing(dialects: &[Dialect], places: &Places) -> Self {
        let hosts: Vec<_> = dialects.iter().map(|host| format!("`{}`", host.word())).collect();
        let mut looked: Vec<_> = dialects
            .iter()
            .flat_map(|dialect| place::files(*dialect, places))
            .map(|file| file.shown)
            .collect();
        looked.dedup();
        Self::Nothing { hosts: hosts.join(", "), looked }
    }
}

/// Reads a file as one value; `None` where there is no such file.
pub(super) fn document(file: &File) -> Result<Option<Value>, ImportError> {
    let shown = || file.shown.clone();
    let unreadable = |source| ImportError::Unreadable { file: shown(), source };
    match fs::metadata(&file.path) {
        Ok(about) if about.is_file() => {}
        // A pipe could be waited for for ever.
        Ok(_) => return Err(unreadable(io::Error::other("it is not a regular file"))),
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    }
    let text = match named::read(&file.path, MAX_FILE_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return Err(ImportError::TooLarge { file: shown() });
        }
        Err(error) => return Err(unreadable(error)),
    };
    parse(&text, file.part)
        .map(Some)
        .map_err(|source| ImportError::Malformed { file: shown(), source })
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn parse(text: &str, part: Part) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if part == Part::Codex {
        return Ok(toml::from_str(text)?);
    }
    Ok(jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default())?)
}
