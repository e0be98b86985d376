//! The folder that is served, and the only way from a path that was given to one that is used.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

/// The largest text that is read or written in one piece; more would fill a model's context many
/// times over.
pub(super) const MAX_TEXT_BYTES: u64 = 1 << 20;

/// Why a file cannot be used. Paths are as they were given.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("`{path}` leads out of the served folder")]
    Outside { path: String },
    #[error("there is no `{path}`")]
    Missing { path: String },
    #[error("`{path}` is not a folder")]
    NotAFolder { path: String },
    #[error("`{path}` is not a regular file")]
    NotAFile { path: String },
    #[error("`{path}` has {size} bytes; the limit is {MAX_TEXT_BYTES} bytes (1 MiB)")]
    TooLarge { path: String, size: u64 },
    #[error("`{path}` is not UTF-8 text")]
    NotText { path: String },
    #[error("`{path}` cannot be used")]
    Broken { path: String, source: io::Error },
}

impl FileError {
    fn of(given: &str, error: io::Error) -> Self {
        let path = given.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing { path },
            _ => Self::Broken { path, source: error },
        }
    }

    /// The error with its cause on one line.
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Broken { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }
}

/// A folder, by its real path.
#[derive(Debug)]
pub(super) struct Root {
    real: PathBuf,
    given: PathBuf,
}

/// Something below the root that is there.
#[derive(Debug)]
pub(super) struct Found {
    /// Where it really is: below the root, all symbolic links followed.
    pub(super) real: PathBuf,
    pub(super) metadata: Metadata,
}

impl Root {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let real = folder.canonicalize()?;
        if !real.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { real, given: std::path::absolute(folder)? })
    }

    pub(super) fn real(&self) -> &Path {
        &self.real
    }

    /// A path below the root as callers write it, with `/` between its parts.
    pub(super) fn relative(&self, real: &Path) -> String {
        let inside = real.strip_prefix(&self.real).unwrap_or(real);
        let parts: Vec<_> =
            inside.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
    }

    /// Finds what a given path names.
    pub(super) fn find(&self, given: &str) -> Result<Found, FileError> {
        let real =
            self.inside(given)?.canonicalize().map_err(|error| FileError::of(given, error))?;
        if !real.starts_with(&self.real) {
            return Err(FileError::Outside { path: given.to_owned() });
        }
        let metadata = fs::metadata(&real).map_err(|error| FileError::of(given, error))?;
        Ok(Found { real, metadata })
    }

    pub(super) fn find_folder(&self, given: &str) -> Result<Found, FileError> {
        let found = self.find(given)?;
        match found.metadata.is_dir() {
            true => Ok(found),
            false => Err(FileError::NotAFolder { path: given.to_owned() }),
        }
    }

    /// Reads a regular file whole, up to the limit. A pipe or device is never opened: it could
    /// block for ever.
    pub(super) fn bytes(&self, given: &str) -> Result<Vec<u8>, FileError> {
        let found = self.find(given)?;
        let path = || given.to_owned();
        if !found.metadata.is_file() {
            return Err(FileError::NotAFile { path: path() });
        }
        let mut bytes = Vec::new();
        File::open(&found.real)
            .and_then(|file| file.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| FileError::of(given, error))?;
        if bytes.len() as u64 > MAX_TEXT_BYTES {
            let size = found.metadata.len().max(bytes.len() as u64);
            return Err(FileError::TooLarge { path: path(), size });
        }
        Ok(bytes)
    }

    pub(super) fn text(&self, given: &str) -> Result<String, FileError> {
        String::from_utf8(self.bytes(given)?)
            .map_err(|_| FileError::NotText { path: given.to_owned() })
    }

    /// Writes a file whole, or leaves it as it was. Says where, and whether it is new.
    pub(super) fn write(&self, given: &str, text: &str) -> Result<(PathBuf, bool), FileError> {
        let size = text.len() as u64;
        if size > MAX_TEXT_BYTES {
            return Err(FileError::TooLarge { path: given.to_owned(), size });
        }
        let target = self.target(given)?;
        let created = !target.exists();
        replace(&target, text, created).map_err(|error| FileError::of(given, error))?;
        Ok((target, created))
    }

    /// Where a file of this path is or would be.
    fn target(&self, given: &str) -> Result<PathBuf, FileError> {
        let path = || given.to_owned();
        let inside = self.inside(given)?;
        if inside.symlink_metadata().is_ok() {
            // Whatever is there is looked at through its links: one that leads out, or nowhere,
            // is not written through.
            let found = self.find(given).map_err(|error| match error {
                FileError::Missing { path } => FileError::Outside { path },
                error => error,
            })?;
            return match found.metadata.is_file() {
                true => Ok(found.real),
                false => Err(FileError::NotAFile { path: path() }),
            };
        }
        let relative = inside.strip_prefix(&self.real).unwrap_or(&inside);
        let (Some(name), Some(parent)) = (relative.file_name(), relative.parent()) else {
            return Err(FileError::NotAFile { path: path() });
        };
        let parent = parent.to_str().ok_or_else(|| FileError::NotText { path: path() })?;
        Ok(self.find_folder(if parent.is_empty() { "." } else { parent })?.real.join(name))
    }

    /// A given path put below the root by its words alone, before anything is looked at, so that
    /// nothing outside can be told from what is not there.
    fn inside(&self, given: &str) -> Result<PathBuf, FileError> {
        let outside = || FileError::Outside { path: given.to_owned() };
        let path = Path::new(given);
        let relative = if path.has_root() || path.is_absolute() {
            path.strip_prefix(&self.real)
                .or_else(|_| path.strip_prefix(&self.given))
                .map_err(|_| outside())?
        } else {
            path
        };
        let mut parts: Vec<&std::ffi::OsStr> = Vec::new();
        for component in relative.components() {
            match component {
                Component::Normal(part) => parts.push(part),
                Component::CurDir => {}
                Component::ParentDir => drop(parts.pop().ok_or_else(outside)?),
                Component::RootDir | Component::Prefix(_) => return Err(outside()),
            }
        }
        Ok(self.real.join(parts.iter().collect::<PathBuf>()))
    }
}

/// Puts a complete new file in the place of the old one, which keeps its permissions.
fn replace(target: &Path, text: &str, created: bool) -> io::Result<()> {
    let folder = target.parent().unwrap_or(target);
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.prefix(".innkeeper-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    if !created {
        file.as_file().set_permissions(fs::metadata(target)?.permissions())?;
    }
    file.persist(target).map_err(|error| error.error)?;
    Ok(())
}
