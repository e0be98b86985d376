//! Finds and reads `mcp.lock`.

use std::path::{Path, PathBuf};

use innkeeper_host::lock::LOCK_FILE_NAME;
use innkeeper_host::{Lock, LockError};

use crate::exit::CliError;

/// Returns the path of the lock: beside the first configuration file.
pub(crate) fn lock_path(files: &[PathBuf]) -> PathBuf {
    files
        .first()
        .map_or_else(|| PathBuf::from(LOCK_FILE_NAME), |first| first.with_file_name(LOCK_FILE_NAME))
}

/// Reads a lock; `None` if the file does not exist.
pub(crate) fn read_lock(file: &Path) -> Result<Option<Lock>, CliError> {
    Lock::from_file(file).map_err(CliError::from)
}

impl From<LockError> for CliError {
    fn from(error: LockError) -> Self {
        let failure = Self::usage(error.to_string());
        match error {
            LockError::Unreadable { source, .. } => failure.with_source(source),
            LockError::Malformed { source, .. } => {
                failure.with_source(source).with_hint("remove the file and run `innkeeper lock`")
            }
            LockError::TooLarge { .. } | LockError::HashMismatch { .. } => {
                failure.with_hint("remove the file and run `innkeeper lock`")
            }
            LockError::UnsupportedVersion { .. } => {
                failure.with_hint("install a newer `innkeeper` to read the file")
            }
        }
    }
}
