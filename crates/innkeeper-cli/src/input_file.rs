//! Reads text files named on the command line, up to a limit.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Reads a whole file, or a pipe to its end.
///
/// # Errors
///
/// The file is unreadable, not UTF-8, or longer than `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<String> {
    read_from(File::open(path)?, limit)
}

/// Reads a regular file like [`read`]. Anything else is an error: a pipe without a writer never ends.
pub(crate) fn read_regular(path: &Path, limit: u64) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    read(path, limit)
}

/// Reads an open source like [`read`].
pub(crate) fn read_from(source: impl Read, limit: u64) -> io::Result<String> {
    let mut text = String::new();
    match source.take(limit + 1).read_to_string(&mut text)? as u64 > limit {
        true => Err(too_large(limit)),
        false => Ok(text),
    }
}

/// Reads the bytes of a file like [`read`].
pub(crate) fn read_bytes(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match File::open(path)?.take(limit + 1).read_to_end(&mut bytes)? as u64 > limit {
        true => Err(too_large(limit)),
        false => Ok(bytes),
    }
}

fn too_large(limit: u64) -> io::Error {
    let message = format!("longer than {} MiB", limit >> 20);
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_up_to_its_limit_and_no_further() {
        assert_eq!(read_from(&b"1234"[..], 4).unwrap(), "1234");
        let past = read_from(io::repeat(b'1'), 4).unwrap_err();
        assert_eq!(past.kind(), io::ErrorKind::FileTooLarge);
    }
}
