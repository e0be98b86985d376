//! `--args`: a JSON object from the command line, a file or stdin.

use std::fs::File;
use std::io::{self, Read};

use super::ArgumentMap;
use super::duplicate_keys::find_duplicate_key;
use crate::input_file;

/// Maximum number of bytes in `--args`; equals the limit of a message to a server.
pub(crate) const MAX_ARGUMENTS_BYTES: u64 = 16 << 20;

/// The source of `--args`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentSource<'a> {
    Inline(&'a str),
    File(&'a str),
    Stdin,
}

impl<'a> ArgumentSource<'a> {
    pub(crate) fn new(typed: &'a str) -> Self {
        match typed.strip_prefix('@') {
            Some(path) => Self::File(path),
            None if typed == "-" => Self::Stdin,
            None => Self::Inline(typed),
        }
    }
}

/// Why `--args` is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentSourceError {
    #[error("cannot read `--args` from `{origin}`")]
    Unreadable { origin: String, source: io::Error },
    #[error("`--args` from `{origin}` is longer than {} MiB", MAX_ARGUMENTS_BYTES >> 20)]
    TooLong { origin: String },
    #[error("`--args` is not a JSON object")]
    NotAnObject { source: serde_json::Error },
    #[error("`--args` has an object with the duplicate key `{key}`")]
    DuplicateKey { key: String },
}

/// Reads and parses `--args`.
pub(crate) fn read_arguments(
    argument_source: &ArgumentSource<'_>,
    stdin: impl Read,
) -> Result<ArgumentMap, ArgumentSourceError> {
    let parse = |text: &str| {
        let arguments = serde_json::from_str(text)
            .map_err(|source| ArgumentSourceError::NotAnObject { source })?;
        find_duplicate_key(text)
            .map_or(Ok(arguments), |key| Err(ArgumentSourceError::DuplicateKey { key }))
    };
    match argument_source {
        ArgumentSource::Inline(text) => parse(text),
        ArgumentSource::Stdin => parse(&read_text("stdin", stdin)?),
        ArgumentSource::File(path) => {
            let unreadable =
                |source| ArgumentSourceError::Unreadable { origin: (*path).to_owned(), source };
            parse(&read_text(path, File::open(path).map_err(unreadable)?)?)
        }
    }
}

fn read_text(from: &str, source: impl Read) -> Result<String, ArgumentSourceError> {
    let from = || from.to_owned();
    input_file::read_from(source, MAX_ARGUMENTS_BYTES).map_err(|source| match source.kind() {
        io::ErrorKind::FileTooLarge => ArgumentSourceError::TooLong { origin: from() },
        _ => ArgumentSourceError::Unreadable { origin: from(), source },
    })
}
