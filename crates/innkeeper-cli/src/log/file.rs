//! Opens the file of `--log-file`.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a log file for appending. A new file is readable for its owner only, because log lines can
/// contain the words of servers.
///
/// # Errors
///
/// The path is no regular file, or the file cannot be opened. A FIFO without a reader does not
/// block.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    // Without this check, a FIFO without a reader has a misleading error.
    if let Ok(metadata) = path.metadata() {
        check_regular(&metadata)?;
    }
    let mut options = File::options();
    options.create(true).append(true);
    restrict(&mut options);
    let file = options.open(path)?;
    check_regular(&file.metadata()?)?;
    Ok(file)
}

fn check_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

#[cfg(unix)]
fn restrict(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt as _;
    const OWNER_ONLY: u32 = 0o600;
    // The path may become a FIFO after the check.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    options.mode(OWNER_ONLY).custom_flags(flags.bits().cast_signed());
}

#[cfg(not(unix))]
fn restrict(_: &mut OpenOptions) {}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_new_log_file_is_readable_for_its_owner_only_and_an_old_one_keeps_its_mode_and_text() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.txt");
        let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
        open_file(&path).unwrap().write_all(b"one\n").unwrap();
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        open_file(&path).unwrap().write_all(b"two\n").unwrap();
        assert_eq!(mode(), 0o640);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }

    /// Attack: files | the log file is a pipe or a directory | the file is rejected at once | No
    /// unbounded wait
    #[test]
    fn a_fifo_and_a_directory_are_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [&fifo, &directory.path().to_owned()] {
            let error = open_file(path).unwrap_err();
            assert_eq!(error.to_string(), "not a regular file", "{}", path.display());
        }
    }
}
