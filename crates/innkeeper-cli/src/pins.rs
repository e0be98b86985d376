//! `mcp.lock`, which stands beside the configuration: found, read and replaced.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use innkeeper_host::{Lock, LockError};

use crate::exit::Failure;

/// The name of the file.
const NAME: &str = "mcp.lock";

/// The lock that belongs to these configuration files: beside the first of them.
pub(crate) fn beside(files: &[PathBuf]) -> PathBuf {
    files.first().map_or_else(|| PathBuf::from(NAME), |first| first.with_file_name(NAME))
}

/// The lock in this file; `None` where there is no file.
pub(crate) fn read(file: &Path) -> Result<Option<Lock>, Failure> {
    Lock::from_file(file).map_err(Failure::from)
}

/// Puts a complete new lock in the place of an old one; whoever reads sees either.
pub(crate) fn replace(file: &Path, text: &str) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // It is meant to be read by others, as far as the user's mask lets them.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut new = builder.prefix(".mcp.lock-").tempfile_in(folder.unwrap_or(Path::new(".")))?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(file).map_err(|error| error.error)?;
    Ok(())
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        let failure = Self::usage(error.to_string());
        match error {
            LockError::Unreadable { source, .. } => failure.because(source),
            LockError::Malformed { source, .. } => {
                failure.because(source).hint("remove the file and run `innkeeper lock`")
            }
            LockError::TooLarge { .. } | LockError::Misfit { .. } => {
                failure.hint("remove the file and run `innkeeper lock`")
            }
            LockError::Version { .. } => failure.hint("a newer `innkeeper` may read it"),
        }
    }
}
