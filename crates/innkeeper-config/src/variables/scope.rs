//! The scope in which the variables of one file are resolved.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Position};
use crate::form::dialect;
use crate::text::source_text::MAX_DIAGNOSTICS;
use crate::variables::dotenv::Variables;
use crate::variables::environment::Environment;
use crate::variables::expand::VariableSource;
use crate::variables::files::read_variables;

/// The scope in which the variables of one file are resolved.
#[derive(Debug)]
pub(crate) struct VariableScope<'e> {
    env: &'e Environment,
    base: PathBuf,
    workspace: PathBuf,
    /// Name of the `.env` file in messages.
    dotenv_name: String,
    /// Read on the first lookup of a variable that the environment does not have: the `.env` file
    /// of another program must not stop the host.
    dotenv: OnceCell<(Variables, Vec<Diagnostic>)>,
}

impl<'e> VariableScope<'e> {
    pub(crate) fn new(source: &str, base: &Path, env: &'e Environment) -> Self {
        let is_settings = base.file_name().is_some_and(|name| {
            dialect::SETTINGS_DIRECTORIES.iter().any(|directory| name == *directory)
        });
        let workspace = match base.parent() {
            Some(around) if is_settings => around,
            _ => base,
        };
        Self {
            env,
            base: base.to_owned(),
            workspace: absolute(workspace, env),
            dotenv_name: Path::new(source).with_file_name(".env").to_string_lossy().into_owned(),
            dotenv: OnceCell::new(),
        }
    }

    /// Resolves a relative path of the file.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        absolute(&self.base.join(path), self.env)
    }

    /// Returns the problems of `.env`, if it was read.
    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.dotenv.into_inner().map(|(_, problems)| problems).unwrap_or_default()
    }

    fn dotenv(&self) -> &Variables {
        let (variables, _) = self.dotenv.get_or_init(|| {
            let position_at = |line| Position {
                source: self.dotenv_name.as_str().into(),
                line,
                column: u32::from(line > 0),
            };
            let path = self.resolve(".env");
            if !self.reads_dotenv() || !path.is_file() {
                return (Variables::new(), Vec::new());
            }
            match read_variables(&path) {
                Ok((variables, bad)) => (
                    variables,
                    bad.into_iter()
                        .take(MAX_DIAGNOSTICS)
                        .map(|bad| Diagnostic::warning(&position_at(bad.line), "", bad.message))
                        .collect(),
                ),
                Err(message) => {
                    (Variables::new(), vec![Diagnostic::warning(&position_at(0), "", message)])
                }
            }
        });
        variables
    }
}

/// Returns an absolute path if the application has set the working directory, so that the path
/// stays valid when the process changes its directory.
fn absolute(path: &Path, env: &Environment) -> PathBuf {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    match env.current_dir() {
        Some(current) if path.is_relative() => current.join(path).components().collect(),
        _ => path.components().collect(),
    }
}

impl VariableSource for VariableScope<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        let value = self.env.get(name).map(str::to_owned);
        value.or_else(|| self.dotenv().get(name).cloned())
    }

    fn reads_dotenv(&self) -> bool {
        !self.env.ignores_dotenv()
    }

    fn workspace(&self) -> &Path {
        &self.workspace
    }

    fn home(&self) -> Option<&str> {
        self.env.home()
    }

    fn current_dir(&self) -> Option<&Path> {
        self.env.current_dir()
    }
}
