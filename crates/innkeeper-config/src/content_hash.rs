//! Hashes of the contents of configuration files.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::variables::environment::Environment;
use crate::variables::files::{self, MAX_FILE_BYTES};

/// A hash of the contents of all files.
pub(crate) type ContentHash = [u8; 32];

/// Resolves the paths of the files against the working directory of `environment`.
pub(crate) fn absolute_paths(files: &[PathBuf], environment: &Environment) -> Vec<PathBuf> {
    let from = environment.current_dir().unwrap_or(Path::new("."));
    files.iter().map(|file| from.join(file)).collect()
}

/// Hashes the files and the `.env` beside each file. Returns `None` if a path is not a regular
/// file, for example a pipe.
pub(crate) fn content_hash(files: &[PathBuf]) -> Option<ContentHash> {
    let mut all = Sha256::new();
    for file in files {
        all.update(file_hash(file)?);
        // A `.env` that is not a regular file is not read.
        all.update(file_hash(&parent_dir(file).join(".env")).unwrap_or_default());
    }
    Some(all.finalize().into())
}

fn read_hash(file: &Path) -> io::Result<Option<ContentHash>> {
    let Some(file) = files::open_regular_file(file)? else { return Ok(None) };
    let mut hash = Sha256::new_with_prefix([1]);
    io::copy(&mut file.take(MAX_FILE_BYTES + 1), &mut hash)?;
    Ok(Some(hash.finalize().into()))
}

fn file_hash(file: &Path) -> Option<ContentHash> {
    // The reason of an unreadable file counts as its content.
    read_hash(file).unwrap_or_else(|error| Some(Sha256::digest(error.kind().to_string()).into()))
}

/// Returns the directory of a file.
pub(crate) fn parent_dir(path: &Path) -> &Path {
    path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
}
