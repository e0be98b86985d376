//! Files beside the configuration and what its variables stand for.

use std::cell::OnceCell;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::Environment;
use super::dialect;
use super::dotenv::{self, BadLine, Variables};
use super::expand::Scope;
use super::problem::{Position, Problem};
use super::source::MAX_PROBLEMS;

/// How large one file of variables may be.
pub(super) const MAX_ENV_FILE_BYTES: u64 = 1024 * 1024;

/// Reads a file that others may have put there: a regular one of at most `limit` bytes. Does not wait
/// for anything but the disk.
///
/// # Errors
/// It cannot be opened or read; `InvalidInput` if it is something else than a file, such as a pipe;
/// `FileTooLarge`.
pub(crate) fn read_bytes(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open(path)?.ok_or(io::ErrorKind::InvalidInput)?;
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Opens a regular file; `None` for anything else, such as a pipe, which could be waited for for
/// ever.
pub(super) fn open(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe without a writer is opened at once then, and found to be none of ours.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Reads a text of at most `limit` bytes; the error is in words, without the path.
pub(super) fn read(path: &Path, limit: u64) -> Result<String, String> {
    let bytes = read_bytes(path, limit).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput if path.is_dir() => "a directory, not a file".to_owned(),
        io::ErrorKind::InvalidInput => "not a file".to_owned(),
        io::ErrorKind::FileTooLarge => too_large(limit),
        _ => wording(&error),
    })?;
    String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned())
}

/// Reads a file of variables.
pub(super) fn read_variables(path: &Path) -> Result<(Variables, Vec<BadLine>), String> {
    read(path, MAX_ENV_FILE_BYTES).map(|text| dotenv::parse(&text))
}

/// What is said of a file past its limit.
pub(super) fn too_large(limit: u64) -> String {
    format!("larger than {} MiB", limit / (1024 * 1024))
}

fn wording(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        kind => format!("cannot be read: {kind}"),
    }
}

/// What the variables of one file stand for.
#[derive(Debug)]
pub(super) struct Surroundings<'e> {
    env: &'e Environment,
    base: PathBuf,
    workspace: PathBuf,
    /// What `.env` is called in messages.
    dotenv_name: String,
    /// Read when a variable is needed that the environment does not have, and not before: a file
    /// that belongs to another program must not be able to stop us.
    dotenv: OnceCell<(Variables, Vec<Problem>)>,
}

impl<'e> Surroundings<'e> {
    pub(super) fn new(source: &str, base: &Path, env: &'e Environment) -> Self {
        let is_settings = base
            .file_name()
            .is_some_and(|name| dialect::SETTINGS_DIRECTORIES.iter().any(|known| name == *known));
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

    /// Where a relative path of the file leads.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        absolute(&self.base.join(path), self.env)
    }

    /// What was wrong with `.env`, if it was read.
    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.dotenv.into_inner().map(|(_, problems)| problems).unwrap_or_default()
    }

    fn dotenv(&self) -> &Variables {
        let (variables, _) = self.dotenv.get_or_init(|| {
            let place = |line| Position {
                source: self.dotenv_name.as_str().into(),
                line,
                column: u32::from(line > 0),
            };
            let path = self.resolve(".env");
            if !path.is_file() {
                return (Variables::new(), Vec::new());
            }
            match read_variables(&path) {
                Ok((variables, bad)) => {
                    let problem =
                        |bad: BadLine| Problem::warning(&place(bad.line), "", bad.message);
                    (variables, bad.into_iter().take(MAX_PROBLEMS).map(problem).collect())
                }
                Err(message) => (Variables::new(), vec![Problem::warning(&place(0), "", message)]),
            }
        });
        variables
    }
}

/// A path that does not change its meaning when the process changes its directory, where the
/// application has said which directory that is.
fn absolute(path: &Path, env: &Environment) -> PathBuf {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    match env.current_dir() {
        Some(current) if path.is_relative() => current.join(path).components().collect(),
        _ => path.components().collect(),
    }
}

impl Scope for Surroundings<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        let own = self.env.get(name).map(str::to_owned);
        own.or_else(|| self.dotenv().get(name).cloned())
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
