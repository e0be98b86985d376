//! The served directory, with path resolution that cannot leave the directory.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use crate::atomic_file;

/// Maximum number of bytes of a text that is read or written; a larger text would exceed a model's
/// context many times.
pub(super) const MAX_TEXT_BYTES: u64 = 1 << 20;

/// Why a file is unusable. Paths are as the caller wrote them.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("`{path}` is outside the served directory")]
    OutsideRoot { path: String },
    #[error("`{path}` does not exist")]
    Missing { path: String },
    #[error("`{path}` is not a directory")]
    NotADirectory { path: String },
    #[error("`{path}` is not a regular file")]
    NotAFile { path: String },
    #[error("`{path}` has {size} bytes; the limit is {MAX_TEXT_BYTES} bytes (1 MiB)")]
    TooLarge { path: String, size: u64 },
    #[error("`{path}` is not UTF-8 text")]
    NotUtf8 { path: String },
    #[error("cannot access `{path}`")]
    Io { path: String, source: io::Error },
}

impl FileError {
    fn from_io(requested: &str, error: io::Error) -> Self {
        let path = requested.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing { path },
            _ => Self::Io { path, source: error },
        }
    }

    /// Returns the error and its cause on one line.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }
}

/// The served directory with its canonical path.
#[derive(Debug)]
pub(super) struct RootDirectory {
    canonical_path: PathBuf,
    absolute_path: PathBuf,
}

/// An existing file or directory in the root directory.
#[derive(Debug)]
pub(super) struct ResolvedPath {
    /// Path in the root directory with all symbolic links resolved.
    pub(super) canonical_path: PathBuf,
    pub(super) metadata: Metadata,
}

impl RootDirectory {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let canonical_path = folder.canonicalize()?;
        if !canonical_path.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { canonical_path, absolute_path: std::path::absolute(folder)? })
    }

    pub(super) fn canonical_path(&self) -> &Path {
        &self.canonical_path
    }

    /// Returns the path relative to the root, with `/` as separator.
    pub(super) fn relative_path(&self, real: &Path) -> String {
        let inside = real.strip_prefix(&self.canonical_path).unwrap_or(real);
        let segments: Vec<_> =
            inside.components().map(|segment| segment.as_os_str().to_string_lossy()).collect();
        if segments.is_empty() { ".".to_owned() } else { segments.join("/") }
    }

    pub(super) fn resolve(&self, requested: &str) -> Result<ResolvedPath, FileError> {
        let canonical_path = self
            .normalize_lexically(requested)?
            .canonicalize()
            .map_err(|error| FileError::from_io(requested, error))?;
        if !canonical_path.starts_with(&self.canonical_path) {
            return Err(FileError::OutsideRoot { path: requested.to_owned() });
        }
        let metadata =
            fs::metadata(&canonical_path).map_err(|error| FileError::from_io(requested, error))?;
        Ok(ResolvedPath { canonical_path, metadata })
    }

    pub(super) fn resolve_directory(&self, requested: &str) -> Result<ResolvedPath, FileError> {
        let resolved = self.resolve(requested)?;
        match resolved.metadata.is_dir() {
            true => Ok(resolved),
            false => Err(FileError::NotADirectory { path: requested.to_owned() }),
        }
    }

    /// Reads a regular file up to the limit. Never opens a pipe or a device, because the open could
    /// block forever.
    pub(super) fn read_bytes(&self, requested: &str) -> Result<Vec<u8>, FileError> {
        let resolved = self.resolve(requested)?;
        let path = || requested.to_owned();
        if !resolved.metadata.is_file() {
            return Err(FileError::NotAFile { path: path() });
        }
        let mut bytes = Vec::new();
        File::open(&resolved.canonical_path)
            .and_then(|file| file.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| FileError::from_io(requested, error))?;
        if bytes.len() as u64 > MAX_TEXT_BYTES {
            let size = resolved.metadata.len().max(bytes.len() as u64);
            return Err(FileError::TooLarge { path: path(), size });
        }
        Ok(bytes)
    }

    pub(super) fn read_text(&self, requested: &str) -> Result<String, FileError> {
        String::from_utf8(self.read_bytes(requested)?)
            .map_err(|_| FileError::NotUtf8 { path: requested.to_owned() })
    }

    /// Writes a file atomically. Returns its path, and whether the file is new.
    pub(super) fn write(&self, requested: &str, text: &str) -> Result<(PathBuf, bool), FileError> {
        let size = text.len() as u64;
        if size > MAX_TEXT_BYTES {
            return Err(FileError::TooLarge { path: requested.to_owned(), size });
        }
        let target = self.write_target(requested)?;
        let created = !target.exists();
        atomic_file::write(&target, text).map_err(|error| FileError::from_io(requested, error))?;
        Ok((target, created))
    }

    /// Returns the path to write to; the file may not exist yet.
    fn write_target(&self, requested: &str) -> Result<PathBuf, FileError> {
        let path = || requested.to_owned();
        let inside = self.normalize_lexically(requested)?;
        if inside.symlink_metadata().is_ok() {
            // The path exists, so its links are resolved: a link that leads outside or nowhere is
            // not written through.
            let resolved = self.resolve(requested).map_err(|error| match error {
                FileError::Missing { path } => FileError::OutsideRoot { path },
                error => error,
            })?;
            return match resolved.metadata.is_file() {
                true => Ok(resolved.canonical_path),
                false => Err(FileError::NotAFile { path: path() }),
            };
        }
        let relative = inside.strip_prefix(&self.canonical_path).unwrap_or(&inside);
        let (Some(name), Some(parent)) = (relative.file_name(), relative.parent()) else {
            return Err(FileError::NotAFile { path: path() });
        };
        let parent = parent.to_str().ok_or_else(|| FileError::NotUtf8 { path: path() })?;
        Ok(self
            .resolve_directory(if parent.is_empty() { "." } else { parent })?
            .canonical_path
            .join(name))
    }

    /// Joins a path to the root without any file access, so that errors do not reveal which files
    /// exist outside.
    fn normalize_lexically(&self, requested: &str) -> Result<PathBuf, FileError> {
        let outside = || FileError::OutsideRoot { path: requested.to_owned() };
        let path = Path::new(requested);
        let relative = if path.has_root() || path.is_absolute() {
            path.strip_prefix(&self.canonical_path)
                .or_else(|_| path.strip_prefix(&self.absolute_path))
                .map_err(|_| outside())?
        } else {
            path
        };
        let mut segments: Vec<&std::ffi::OsStr> = Vec::new();
        for component in relative.components() {
            match component {
                Component::Normal(segment) => segments.push(segment),
                Component::CurDir => {}
                Component::ParentDir => drop(segments.pop().ok_or_else(outside)?),
                Component::RootDir | Component::Prefix(_) => return Err(outside()),
            }
        }
        Ok(self.canonical_path.join(segments.iter().collect::<PathBuf>()))
    }
}
