//! Saves blobs to new files.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::exit::CliError;

/// Maximum number of files of one type in a directory.
const MAX_FILES: usize = 10_000;

/// Extension of a file without a known MIME type.
const DEFAULT_EXTENSION: &str = "bin";

/// Extensions that a desktop opens without running anything. A server chooses the type of its blobs:
/// with `text/html`, `image/svg+xml` or `application/x-sh`, a double click would run its code.
const SAFE_EXTENSIONS: &[&str] = &[
    "aac", "avif", "bmp", "csv", "epub", "flac", "gif", "ico", "jpeg", "jpg", "json", "m4a", "md",
    "mid", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "ogv", "opus", "pdf", "png", "tif", "tiff",
    "tsv", "txt", "wav", "weba", "webm", "webp", "yaml", "zip",
];

/// Returns the extension for a type. Any other text is shown as text.
fn extension(mime_type: Option<&str>) -> &'static str {
    let known = mime_type.and_then(mime2ext::mime2ext);
    match known.filter(|extension| SAFE_EXTENSIONS.contains(extension)) {
        Some(extension) => extension,
        None if stem(mime_type) == "text" => "txt",
        None => DEFAULT_EXTENSION,
    }
}

/// The directory of saved blobs. A file is readable by its owner only, and no file is overwritten.
#[derive(Debug, Default)]
pub(crate) struct BlobDirectory(Option<PathBuf>);

impl BlobDirectory {
    /// Uses the given directory, which is created if it does not exist, or the temporary directory.
    pub(crate) fn new(chosen: Option<&Path>) -> Result<Self, CliError> {
        if let Some(directory) = chosen {
            fs::create_dir_all(directory).map_err(|error| {
                CliError::usage(format!("cannot create the directory `{}`", directory.display()))
                    .with_source(error)
            })?;
        }
        Ok(Self(chosen.map(Path::to_owned)))
    }

    /// Whether the user chose the directory.
    pub(crate) fn is_chosen(&self) -> bool {
        self.0.is_some()
    }

    /// Writes a new file and returns its path. Only the extension depends on the MIME type: a name
    /// from a server could be the name of another file.
    pub(super) fn save(&self, bytes: &[u8], mime_type: Option<&str>) -> io::Result<PathBuf> {
        let extension = extension(mime_type);
        match &self.0 {
            Some(directory) => {
                let (mut file, path) = create_file(directory, stem(mime_type), extension)?;
                if let Err(error) = file.write_all(bytes) {
                    // The error of the write is the one to report.
                    let _ = fs::remove_file(&path);
                    return Err(error);
                }
                Ok(path)
            }
            None => {
                let suffix = format!(".{extension}");
                let mut file =
                    tempfile::Builder::new().prefix("innkeeper-").suffix(&suffix).tempfile()?;
                file.write_all(bytes)?;
                let (_, path) = file.keep().map_err(|error| error.error)?;
                Ok(path)
            }
        }
    }
}

impl fmt::Display for BlobDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(directory) => write!(f, "`{}`", directory.display()),
            None => f.write_str("the temporary directory"),
        }
    }
}

/// Returns the name of a file without its number and extension.
fn stem(mime_type: Option<&str>) -> &'static str {
    match mime_type.and_then(|mime_type| mime_type.split('/').next()) {
        Some("image") => "image",
        Some("audio") => "audio",
        Some("video") => "video",
        Some("text") => "text",
        Some(_) | None => "file",
    }
}

/// Creates `STEM.EXTENSION`, `STEM-2.EXTENSION` and so on: the first name that is free.
fn create_file(directory: &Path, stem: &str, extension: &str) -> io::Result<(File, PathBuf)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    for number in 1..=MAX_FILES {
        let name = match number {
            1 => format!("{stem}.{extension}"),
            _ => format!("{stem}-{number}.{extension}"),
        };
        let path = directory.join(name);
        match options.open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "the directory has too many files"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: files | a server chooses the type of a blob that exists as a file | the file gets a
    /// new name; no file is replaced | Foreign text stays text
    #[test]
    fn a_new_file_has_the_extension_of_its_type_and_replaces_no_file() {
        let parent = tempfile::tempdir().unwrap();
        let chosen = parent.path().join("new/directory");
        let directory = BlobDirectory::new(Some(&chosen)).unwrap();
        let save = |mime_type| directory.save(b"bytes", mime_type).unwrap();
        assert_eq!(save(Some("image/png")), chosen.join("image.png"));
        assert_eq!(save(Some("image/png")), chosen.join("image-2.png"));
        assert_eq!(save(Some("../../x")), chosen.join("file.bin"));
        assert_eq!(save(None), chosen.join("file-2.bin"));
        assert_eq!(save(Some("application/pdf")), chosen.join("file.pdf"));
        assert_eq!(fs::read(chosen.join("image.png")).unwrap(), b"bytes");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(chosen.join("image.png")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    /// Attack: files | a server names the type of a page, a drawing or a program for its blob | the file
    /// has an extension that nothing runs | Foreign text stays text
    #[test]
    fn no_saved_file_has_an_extension_that_runs_code() {
        for (mime_type, expected) in [
            ("text/html", "txt"),
            ("text/html; charset=utf-8", "txt"),
            ("text/javascript", "txt"),
            ("image/svg+xml", "bin"),
            ("application/xhtml+xml", "bin"),
            ("application/x-sh", "bin"),
            ("application/x-msdownload", "bin"),
            ("application/x-ms-shortcut", "bin"),
            ("application/vnd.ms-excel.sheet.macroenabled.12", "bin"),
            ("application/java-archive", "bin"),
            ("application/x-desktop", "bin"),
            ("text/plain", "txt"),
            ("text/csv", "csv"),
            ("image/png", "png"),
        ] {
            assert_eq!(extension(Some(mime_type)), expected, "{mime_type}");
        }
    }

    /// Attack: files | the directory for blobs contains a link to a file elsewhere | the file
    /// elsewhere stays unchanged | Foreign text stays text
    #[test]
    fn a_link_in_the_directory_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(outside.path(), directory.path().join("image.png")).unwrap();
        let blobs = BlobDirectory::new(Some(directory.path())).unwrap();
        let path = blobs.save(b"bytes", Some("image/png")).unwrap();
        assert_eq!(fs::read(outside.path()).unwrap(), b"");
        #[cfg(unix)]
        assert_eq!(path, directory.path().join("image-2.png"));
        assert_eq!(fs::read(path).unwrap(), b"bytes");
    }
}
