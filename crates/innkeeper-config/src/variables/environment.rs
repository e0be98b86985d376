//! A snapshot of environment variables that the application passes in.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::variables::files;

/// The variables and the working directory that a configuration is read against.
///
/// The library reads the process environment only in [`Environment::from_process`] and in
/// [`Config::from_file`](crate::Config::from_file). `Debug` omits values, because variables hold
/// secrets.
#[derive(Clone, Default, PartialEq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    current_dir: Option<PathBuf>,
    ignores_dotenv: bool,
}

impl Environment {
    /// Creates an environment of exactly these variables; the last of two equal names wins.
    pub fn from_pairs<K, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let variables = pairs.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self { variables: variables.collect(), ..Self::default() }
    }

    /// Copies the current environment and the working directory of this process.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where an application may ask for its own environment"
    )]
    pub fn from_process() -> Self {
        let mut environment = Self::from_pairs(std::env::vars_os());
        environment.current_dir = std::env::current_dir().ok();
        environment
    }

    /// Sets the directory for `${cwd}`.
    #[must_use]
    pub fn with_current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(directory.into());
        self
    }

    /// Excludes `.env` files: only the variables of this environment have values.
    #[must_use]
    pub fn without_dotenv(mut self) -> Self {
        self.ignores_dotenv = true;
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Removes the variables with these names.
    #[must_use]
    pub fn without_variables(mut self, names: &[&str]) -> Self {
        self.variables.retain(|variable, _| !names.iter().any(|name| variable == *name));
        self
    }

    /// Adds the variables with these names from a `.env` file, where this environment does not set
    /// them. A file that is missing or unreadable, and an environment [without
    /// `.env`](Self::without_dotenv), add nothing.
    #[must_use]
    pub fn with_dotenv_variables(mut self, file: &Path, names: &[&str]) -> Self {
        if self.ignores_dotenv || names.iter().all(|name| self.get(name).is_some()) {
            return self;
        }
        let Ok((mut variables, _)) = files::read_variables(file) else { return self };
        for name in names {
            if let Some(value) = variables.swap_remove(*name)
                && self.get(name).is_none()
            {
                self.variables.insert((*name).into(), value.into());
            }
        }
        self
    }

    pub(crate) fn ignores_dotenv(&self) -> bool {
        self.ignores_dotenv
    }

    /// Returns the value of a variable, or `None` if the variable is unset or not Unicode.
    pub fn get(&self, name: &str) -> Option<&str> {
        if let Some(value) = self.variables.get(OsStr::new(name)) {
            return value.to_str();
        }
        // Windows ignores case in names: `Path` and `PATH` are the same variable.
        if !cfg!(windows) {
            return None;
        }
        self.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns all Unicode variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter_os().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)))
    }

    /// Returns all variables as the operating system stores them, sorted by name.
    pub fn iter_os(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Returns the working directory, if the application has set it.
    pub fn current_dir(&self) -> Option<&Path> {
        self.current_dir.as_deref()
    }

    /// Returns the user's home directory from the variables, if the path is absolute.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_variables_have_no_value_and_the_others_stay() {
        let environment = Environment::from_pairs([("A", "1"), ("AB", "2"), ("B", "3")]);
        let environment = environment.without_variables(&["A", "B", "ABSENT"]);
        assert_eq!(environment.iter().collect::<Vec<_>>(), [("AB", "2")]);
    }

    #[test]
    fn only_windows_ignores_the_case_of_a_name() {
        let environment = Environment::from_pairs([("Path", "1")]);
        assert_eq!(environment.get("Path"), Some("1"));
        assert_eq!(environment.get("PATH"), cfg!(windows).then_some("1"));
    }

    #[test]
    fn a_dotenv_file_adds_the_named_variables_that_are_not_set() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(".env");
        std::fs::write(&file, "KEY=one\nOTHER=two\nSET=three\n").unwrap();
        let own = || Environment::from_pairs([("SET", "own")]);
        let names = ["KEY", "SET", "ABSENT"];
        let values = |environment: &Environment| {
            environment.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
        };
        let read = own().with_dotenv_variables(&file, &names);
        assert_eq!(values(&read), ["KEY=one", "SET=own"]);
        let absent = directory.path().join("absent");
        for unchanged in [
            own().with_dotenv_variables(&absent, &names),
            own().without_dotenv().with_dotenv_variables(&file, &names),
        ] {
            assert_eq!(values(&unchanged), ["SET=own"]);
        }
    }
}
