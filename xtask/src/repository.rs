//! The repository's own text files in memory, so that a rule is a function a test can feed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::source::Source;
use crate::{Chore, program};

/// Folders that hold nothing of ours.
const SKIPPED: &[&str] = &["target", ".git", "node_modules", "corpus", "artifacts"];

/// Every text file by its path from the root, with forward slashes.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    texts: BTreeMap<String, String>,
    sources: BTreeMap<String, Source>,
}

impl Repository {
    /// Reads the one this program was built in.
    ///
    /// # Errors
    ///
    /// A folder cannot be listed.
    pub(crate) fn read() -> Chore<Self> {
        let mut repository = Self::default();
        repository.read_folder(&program::root(), "")?;
        Ok(repository)
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> Chore {
        let problem = |error| format!("`{}`: {error}", program::relative(folder));
        for entry in fs::read_dir(folder).map_err(problem)? {
            let entry = entry.map_err(problem)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(problem)?;
            if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
                self.read_folder(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file()
                && let Ok(text) = fs::read_to_string(entry.path())
            {
                self.insert(&path, &text);
            }
        }
        Ok(())
    }

    /// Adds a file; tests plant their offences with it.
    pub(crate) fn insert(&mut self, path: &str, text: &str) {
        if is_rust(path) {
            self.sources.insert(path.to_owned(), Source::new(text));
        }
        self.texts.insert(path.to_owned(), text.to_owned());
    }

    /// Every text file.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// One text file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// Every Rust file.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.sources.iter().map(|(path, source)| (path.as_str(), source))
    }

    /// One Rust file.
    pub(crate) fn source(&self, path: &str) -> Option<&Source> {
        self.sources.get(path)
    }
}

fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

/// Whether the whole file holds tests and nothing else.
pub(crate) fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.contains("/benches/")
}
