//! A snapshot of environment variables, handed in instead of looked up.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// The variables and the working directory that a configuration is read against.
///
/// The library never looks at the process environment by itself: whoever calls it says what there
/// is. Values are kept out of `Debug`, since they are where secrets live.
#[derive(Clone, Default, PartialEq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    current_dir: Option<PathBuf>,
}

impl Environment {
    /// An environment of exactly these variables; of two with one name the last one counts.
    pub fn from_pairs<K, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let variables = pairs.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self { variables: variables.collect(), current_dir: None }
    }

    /// The environment of this process, as it is now.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where an application may ask for its own environment"
    )]
    pub fn of_process() -> Self {
        let mut environment = Self::from_pairs(std::env::vars_os());
        environment.current_dir = std::env::current_dir().ok();
        environment
    }

    /// The same variables, with `${cwd}` standing for this directory.
    #[must_use]
    pub fn with_current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(directory.into());
        self
    }

    /// The value of a variable, unless it is unset or not Unicode.
    pub fn get(&self, name: &str) -> Option<&str> {
        if let Some(value) = self.variables.get(OsStr::new(name)) {
            return value.to_str();
        }
        // Windows compares names without regard to case; `Path` and `PATH` are one variable there.
        if !cfg!(windows) {
            return None;
        }
        self.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All variables that are Unicode, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter_os().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)))
    }

    /// All variables as the system has them, sorted by name.
    pub fn iter_os(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The working directory, when the application has said which it is.
    pub fn current_dir(&self) -> Option<&Path> {
        self.current_dir.as_deref()
    }

    /// The user's home directory, as the variables tell it: an absolute path, or none.
    pub fn home(&self) -> Option<&str> {
        let absolute = |name| self.get(name).filter(|path| Path::new(path).is_absolute());
        absolute("HOME").or_else(|| absolute("USERPROFILE"))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("variables", &self.variables.len()).finish()
    }
}
