//! The error of a lock file.

use std::io;

/// The reason why a lock cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file exists and cannot be read.
    #[error("cannot read `{file}`")]
    Unreadable {
        /// File, as the user named it.
        file: String,
        /// The I/O error.
        source: io::Error,
    },
    /// The file is larger than [`super::MAX_LOCK_BYTES`].
    #[error("`{file}` is larger than {} MiB", super::MAX_LOCK_BYTES >> 20)]
    TooLarge {
        /// File, as the user named it.
        file: String,
    },
    /// The text is not a valid lock.
    #[error("{file}:{line}:{column}: not a valid lock")]
    Malformed {
        /// File, as the user named it.
        file: String,
        /// Line, starting at 1.
        line: usize,
        /// Column, starting at 1; 0 in an empty file.
        column: usize,
        /// The JSON error.
        source: serde_json::Error,
    },
    /// The version of the lock is not supported.
    #[error("`{file}`: unsupported lock version {version}, expected 1")]
    UnsupportedVersion {
        /// File, as the user named it.
        file: String,
        /// Version of the lock.
        version: u64,
    },
    /// A hash does not match its content: the file was edited or merged by hand.
    #[error("`{file}`: hash mismatch for {item}")]
    HashMismatch {
        /// File, as the user named it.
        file: String,
        /// Item with the wrong hash.
        item: String,
    },
}

impl LockError {
    pub(super) fn malformed(file: &str, source: serde_json::Error) -> Self {
        let line = source.line();
        let column = source.column();
        Self::Malformed { file: file.to_owned(), line, column, source }
    }
}
