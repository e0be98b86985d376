//! Replaces a file atomically.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// Replaces a file with a new text: a reader sees the old or the new text, never a part. An existing
/// file keeps its permissions; a new file is readable as far as the umask allows.
pub(crate) fn write(target: &Path, text: &str) -> io::Result<()> {
    let directory = target.parent().filter(|directory| !directory.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file =
        builder.prefix(".innkeeper-").tempfile_in(directory.unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    match fs::metadata(target) {
        Ok(metadata) => file.as_file().set_permissions(metadata.permissions())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    file.as_file().sync_all()?;
    file.persist(target).map_err(|error| error.error)?;
    Ok(())
}
