//! File access for configurations, with the scope of their variables.

use std::cell::OnceCell;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::Environment;
use super::diagnostic::{Diagnostic, Position};
use super::dialect;
use super::dotenv::{self, InvalidLine, Variables};
use super::expand::VariableSource;
use super::source_text::MAX_DIAGNOSTICS;

/// Maximum size of a file of variables, in bytes.
pub(super) const MAX_ENV_FILE_BYTES: u64 = 1024 * 1024;

/// Reads an untrusted file: a regular file of at most `limit` bytes. Waits only for the disk.
///
/// # Errors
/// Returns an error if the file cannot be opened or read, `InvalidInput` if the path is not a
/// regular file, such as a pipe, and `FileTooLarge` above the limit.
pub fn read_bytes(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_regular_file(path)?.ok_or(io::ErrorKind::InvalidInput)?;
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Opens a regular file. Returns `None` for anything else, such as a pipe, which could block for
/// ever.
pub(super) fn open_regular_file(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // With `NONBLOCK`, opening a pipe without a writer returns at once, and the check below
        // rejects it.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Reads a text file of at most `limit` bytes; the error is a message without the path.
pub(super) fn read_text(path: &Path, limit: u64) -> Result<String, String> {
    let bytes = read_bytes(path, limit).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput if path.is_dir() => "a directory, not a file".to_owned(),
        io::ErrorKind::InvalidInput => "not a file".to_owned(),
        io::ErrorKind::FileTooLarge => too_large_message(limit),
        _ => describe_io_error(&error),
    })?;
    String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned())
}

/// Reads a file of variables.
pub(super) fn read_variables(path: &Path) -> Result<(Variables, Vec<InvalidLine>), String> {
    read_text(path, MAX_ENV_FILE_BYTES).map(|text| dotenv::parse(&text))
}

/// Returns the message for a file above its limit.
pub(super) fn too_large_message(limit: u64) -> String {
    format!("larger than {} MiB", limit / (1024 * 1024))
}

fn describe_io_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        kind => format!("cannot read: {kind}"),
    }
}

/// The scope in which the variables of one file are resolved.
#[derive(Debug)]
pub(super) struct VariableScope<'e> {
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
    pub(super) fn new(source: &str, base: &Path, env: &'e Environment) -> Self {
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
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        absolute(&self.base.join(path), self.env)
    }

    /// Returns the problems of `.env`, if it was read.
    pub(super) fn into_diagnostics(self) -> Vec<Diagnostic> {
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
                Ok((variables, bad)) => {
                    let problem = |bad: InvalidLine| {
                        Diagnostic::warning(&position_at(bad.line), "", bad.message)
                    };
                    (variables, bad.into_iter().take(MAX_DIAGNOSTICS).map(problem).collect())
                }
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
