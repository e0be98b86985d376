//! Replaces or creates a file atomically.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// Permissions of a new file as far as the umask allows.
const SHARED_MODE: u32 = 0o666;

/// Permissions of a new file that only its owner can read.
const PRIVATE_MODE: u32 = 0o600;

/// Replaces a file with a new text: a reader sees the old or the new text, never a part. An existing
/// file keeps its permissions; a new file is readable as far as the umask allows.
pub(crate) fn write(target: &Path, text: &str) -> io::Result<()> {
    let file = temporary_file(target, text, SHARED_MODE)?;
    match fs::metadata(target) {
        Ok(metadata) => file.as_file().set_permissions(metadata.permissions())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    file.as_file().sync_all()?;
    file.persist(target).map_err(|error| error.error)?;
    Ok(())
}

/// Replaces a file like [`write`]; only its owner can read it afterwards.
pub(crate) fn write_private(target: &Path, text: &str) -> io::Result<()> {
    let file = temporary_file(target, text, PRIVATE_MODE)?;
    file.as_file().sync_all()?;
    file.persist(target).map_err(|error| error.error)?;
    Ok(())
}

/// Creates a file that only its owner can read; an existing file is an error of the kind
/// [`io::ErrorKind::AlreadyExists`] and stays as it is.
pub(crate) fn create_private(target: &Path, text: &str) -> io::Result<()> {
    let file = temporary_file(target, text, PRIVATE_MODE)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(target).map_err(|error| error.error)?;
    Ok(())
}

/// Writes the text to a new file beside the target.
#[cfg_attr(not(unix), expect(unused_variables, reason = "other systems have no such mode"))]
fn temporary_file(target: &Path, text: &str, mode: u32) -> io::Result<NamedTempFile> {
    let directory = target.parent().filter(|directory| !directory.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    let mut file =
        builder.prefix(".innkeeper-").tempfile_in(directory.unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_private_file_is_for_its_owner_and_is_never_replaced_by_a_new_one() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.json");
        create_private(&file, "one").unwrap();
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, PRIVATE_MODE);
        let error = create_private(&file, "two").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");
        write_private(&file, "three").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "three");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
