//! Why a lock cannot be used.

use std::io;

/// Why a lock cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file is there and cannot be read.
    #[error("`{file}` cannot be read")]
    Unreadable {
        /// The file as it was named.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// The file is longer than [`super::MAX_LOCK_BYTES`].
    #[error("`{file}` is longer than {} MiB", super::MAX_LOCK_BYTES >> 20)]
    TooLarge {
        /// The file as it was named.
        file: String,
    },
    /// The text is no lock.
    #[error("{file}:{line}:{column}: not a lock")]
    Malformed {
        /// The file as it was named.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1; 0 in an empty file.
        column: usize,
        /// What is wrong there.
        source: serde_json::Error,
    },
    /// The lock has a form that is not known here.
    #[error("`{file}` is a lock of version {version}; version 1 is read here")]
    Version {
        /// The file as it was named.
        file: String,
        /// Its version.
        version: u64,
    },
    /// A hash is not that of what stands beside it: the file was edited or merged by hand.
    #[error("`{file}`: the hash of {item} does not fit what stands beside it")]
    Misfit {
        /// The file as it was named.
        file: String,
        /// Which one.
        item: String,
    },
}

impl LockError {
    pub(super) fn malformed(file: &str, source: serde_json::Error) -> Self {
        let (line, column) = (source.line(), source.column());
        Self::Malformed { file: file.to_owned(), line, column, source }
    }
}
