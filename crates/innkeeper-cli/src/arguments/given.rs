//! `--args`: a JSON object typed on the line, in a file, or on stdin.

use std::fs::File;
use std::io::{self, Read};

use super::Arguments;
use super::distinct::repeated;
use crate::named;

/// The longest `--args` text; a message to a server may not be longer than this either.
pub(crate) const MAX_GIVEN_BYTES: u64 = 16 << 20;

/// Where the text of `--args` is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Given<'a> {
    Inline(&'a str),
    File(&'a str),
    Stdin,
}

impl<'a> Given<'a> {
    pub(crate) fn new(typed: &'a str) -> Self {
        match typed.strip_prefix('@') {
            Some(path) => Self::File(path),
            None if typed == "-" => Self::Stdin,
            None => Self::Inline(typed),
        }
    }
}

/// Why `--args` cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GivenError {
    #[error("`--args` cannot be read from `{from}`")]
    Unreadable { from: String, source: io::Error },
    #[error("`--args` from `{from}` is longer than {} MiB", MAX_GIVEN_BYTES >> 20)]
    TooLong { from: String },
    #[error("`--args` is not a JSON object")]
    NotAnObject { source: serde_json::Error },
    #[error("`--args` has the key `{key}` more than once in one object")]
    Repeated { key: String },
}

/// Reads the arguments that `--args` gives.
pub(crate) fn read_given(given: &Given<'_>, stdin: impl Read) -> Result<Arguments, GivenError> {
    let parse = |text: &str| {
        let given =
            serde_json::from_str(text).map_err(|source| GivenError::NotAnObject { source })?;
        repeated(text).map_or(Ok(given), |key| Err(GivenError::Repeated { key }))
    };
    match given {
        Given::Inline(text) => parse(text),
        Given::Stdin => parse(&read("stdin", stdin)?),
        Given::File(path) => {
            let unreadable = |source| GivenError::Unreadable { from: (*path).to_owned(), source };
            parse(&read(path, File::open(path).map_err(unreadable)?)?)
        }
    }
}

fn read(from: &str, source: impl Read) -> Result<String, GivenError> {
    let from = || from.to_owned();
    named::read_from(source, MAX_GIVEN_BYTES).map_err(|source| match source.kind() {
        io::ErrorKind::FileTooLarge => GivenError::TooLong { from: from() },
        _ => GivenError::Unreadable { from: from(), source },
    })
}
