//! Access to the files of a configuration.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use crate::variables::dotenv::{self, InvalidLine, Variables};

/// Maximum size of a configuration file, in bytes: far above real files, far below a costly size.
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Maximum size of a file of variables, in bytes.
pub(crate) const MAX_ENV_FILE_BYTES: u64 = 1024 * 1024;

/// Reads an untrusted file: a regular file of at most `limit` bytes. Waits only for the disk.
///
/// # Errors
/// Returns an error if the file cannot be opened or read, `InvalidInput` if the path is not a
/// regular file, such as a pipe, and `FileTooLarge` above the limit.
pub fn read_bytes(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_regular_file(path)?.ok_or(io::ErrorKind::InvalidInput)?;
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Opens a regular file. Returns `None` for anything else, such as a pipe, which could block for
/// ever.
pub(crate) fn open_regular_file(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // With `NONBLOCK`, opening a pipe without a writer returns at once, and the check below
        // rejects it.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Reads a text file of at most `limit` bytes; the error is a message without the path.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String, String> {
    let bytes = read_bytes(path, limit).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput if path.is_dir() => "a directory, not a file".to_owned(),
        io::ErrorKind::InvalidInput => "not a file".to_owned(),
        io::ErrorKind::FileTooLarge => too_large_message(limit),
        _ => describe_io_error(&error),
    })?;
    String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned())
}

pub(crate) fn read_variables(path: &Path) -> Result<(Variables, Vec<InvalidLine>), String> {
    read_text(path, MAX_ENV_FILE_BYTES).map(|text| dotenv::parse(&text))
}

/// Returns the message for a file above its limit.
pub(crate) fn too_large_message(limit: u64) -> String {
    format!("larger than {} MiB", limit / (1024 * 1024))
}

fn describe_io_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        kind => format!("cannot read: {kind}"),
    }
}
