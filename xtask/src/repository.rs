//! The text files of the repository in memory, as input of rules.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::source::SourceFile;
use crate::{TaskResult, program};

/// Directories without files of this project.
const SKIPPED_DIRS: &[&str] =
    &["target", ".git", "node_modules", "corpus", "artifacts", "__pycache__", ".hypothesis"];

/// All text files by path from the root, with forward slashes.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    texts: BTreeMap<String, String>,
    sources: BTreeMap<String, SourceFile>,
}

impl Repository {
    /// Reads the repository of this program.
    ///
    /// # Errors
    ///
    /// A directory cannot be listed.
    pub(crate) fn load() -> TaskResult<Self> {
        let mut repository = Self::default();
        repository.load_dir(&program::repository_root(), "")?;
        Ok(repository)
    }

    fn load_dir(&mut self, dir: &Path, prefix: &str) -> TaskResult {
        let problem = |error| format!("`{}`: {error}", program::relative_path(dir));
        for entry in fs::read_dir(dir).map_err(problem)? {
            let entry = entry.map_err(problem)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(problem)?;
            if kind.is_dir() && !SKIPPED_DIRS.contains(&name.as_str()) {
                self.load_dir(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file()
                && let Ok(text) = fs::read_to_string(entry.path())
            {
                self.insert(&path, &text);
            }
        }
        Ok(())
    }

    /// Adds a file; tests add violations with this function.
    pub(crate) fn insert(&mut self, path: &str, text: &str) {
        if is_rust(path) {
            self.sources.insert(path.to_owned(), SourceFile::new(text));
        }
        self.texts.insert(path.to_owned(), text.to_owned());
    }

    /// All text files.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// One text file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// All Rust files.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &SourceFile)> {
        self.sources.iter().map(|(path, source)| (path.as_str(), source))
    }

    /// One Rust file.
    pub(crate) fn source(&self, path: &str) -> Option<&SourceFile> {
        self.sources.get(path)
    }
}

fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

/// Whether the file contains only tests.
pub(crate) fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.contains("/benches/")
}
