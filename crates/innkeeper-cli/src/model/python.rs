//! Python as downloader: `pip` for packages, `zipfile` for archives.
//!
//! `pip` knows the user's index, mirrors and proxies, so this project names no registry and needs
//! no archive library.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use innkeeper_host::{Environment, inherited_environment};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::bundles::PypiPackage;
use super::output_tail::OutputTail;
use super::parent_death::ParentDeathLink;

/// Timeout of one run: 160 MB over a slow connection.
const RUN_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// Interval between two checks of the download size.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of stderr lines in an error.
const MAX_STDERR_LINES: usize = 4;

/// A `python3` with `pip`, which loads no code from the current directory or from the directories of
/// `PYTHONPATH`.
#[derive(Clone, Debug)]
pub(crate) struct Python {
    program: PathBuf,
    /// The inherited variables, and all settings of `pip`.
    environment: Vec<(OsString, OsString)>,
    parent_death_link: ParentDeathLink,
}

/// Why a Python run failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PythonError {
    #[error("cannot download the packages: `python3` is not on the `PATH`")]
    Missing,
    #[error("cannot download the packages: `python3` has no `pip`")]
    NoPip,
    #[error("cannot start `python3`")]
    Spawn { source: io::Error },
    #[error("`python3` timed out after {} minutes", RUN_TIMEOUT.as_secs() / 60)]
    TimedOut,
    /// Python failed; `stderr` has its last lines.
    #[error("{stderr}")]
    Failed { stderr: String },
}

impl Python {
    /// Finds `python3` in the absolute directories of the `PATH`.
    ///
    /// # Errors
    ///
    /// There is no `python3`, or the path of this executable is unknown.
    pub(crate) fn find(environment: &Environment) -> Result<Self, PythonError> {
        let path = environment.get("PATH").unwrap_or_default();
        // A relative directory belongs to the project in which the user stands.
        let dirs = std::env::split_paths(path).filter(|dir| dir.is_absolute());
        let program = dirs.map(|dir| dir.join("python3")).find(|program| program.is_file());
        let program = program.ok_or(PythonError::Missing)?;
        let death_link =
            ParentDeathLink::this_program().map_err(|source| PythonError::Spawn { source })?;
        Ok(Self {
            program,
            environment: pip_environment(environment),
            parent_death_link: death_link,
        })
    }

    /// Uses another program in place of Python.
    #[cfg(test)]
    pub(crate) fn with_program(program: PathBuf, environment: &Environment) -> Self {
        let parent_death_link = ParentDeathLink::disabled();
        Self { program, environment: pip_environment(environment), parent_death_link }
    }

    /// Resolves the interpreter itself, if the interpreter has `pip`. The program on the `PATH` may
    /// be a script that starts the interpreter as a child process, which would outlive the script.
    pub(crate) async fn with_pip(self, scratch: &Path) -> Result<Self, PythonError> {
        let script = "import pip, sys; print(sys.executable or '')";
        let output = match self.run(["-c", script], scratch, || ()).await {
            Err(PythonError::Failed { .. }) => return Err(PythonError::NoPip),
            other => other?,
        };
        let executable = output.last_lines(1).into_iter().next().map(PathBuf::from);
        let program = executable.filter(|program| program.is_file()).unwrap_or(self.program);
        Ok(Self { program, ..self })
    }

    /// Downloads a package to a directory and reports the downloaded bytes. `scratch` is for
    /// temporary files of `pip`.
    pub(crate) async fn download(
        &self,
        package: &PypiPackage,
        into: &Path,
        scratch: &Path,
        mut on_progress: impl FnMut(u64),
    ) -> Result<(), PythonError> {
        let requirement = format!("{}=={}", package.name, package.version);
        let args_text = "-m pip download --no-deps --only-binary :all: --no-input --quiet \
                     --disable-pip-version-check --dest";
        let fixed_args = args_text.split(' ').map(OsStr::new);
        let args = fixed_args.chain([into.as_os_str(), OsStr::new(&requirement)]);
        self.run(args, scratch, || on_progress(wheel_bytes(scratch))).await.map(drop)
    }

    /// Unpacks an archive to a directory.
    pub(crate) async fn unpack(
        &self,
        archive: &Path,
        into: &Path,
        scratch: &Path,
    ) -> Result<(), PythonError> {
        let args = [OsStr::new("-m"), "zipfile".as_ref(), "-e".as_ref(), archive.as_ref()];
        self.run(args.into_iter().chain([into.as_os_str()]), scratch, || ()).await.map(drop)
    }

    /// Runs Python until the process exits; returns the end of stdout. All paths are absolute:
    /// `scratch` is the working directory and has the temporary files.
    async fn run(
        &self,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        scratch: &Path,
        poll: impl FnMut(),
    ) -> Result<OutputTail, PythonError> {
        let mut command = self.parent_death_link.command(self.program.as_os_str());
        // Isolated mode: neither the working directory, nor `PYTHONPATH`, nor the site directory of
        // the user can replace a module.
        command.arg("-I");
        for arg in args {
            command.arg(OsString::from(arg.as_ref()));
        }
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env("TMPDIR", scratch).current_dir(scratch);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = |source| PythonError::Spawn { source };
        let mut child = command.spawn().map_err(start)?;
        let stdout_tail = OutputTail::default();
        let stderr_tail = OutputTail::default();
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        let wait_for_exit = async {
            tokio::join!(stdout_tail.follow_optional(stdout), stderr_tail.follow_optional(stderr));
            child.wait().await
        };
        let done = timeout(RUN_TIMEOUT, poll_while(wait_for_exit, poll)).await;
        let status = done.map_err(|_| PythonError::TimedOut)?.map_err(start)?;
        if status.success() {
            return Ok(stdout_tail);
        }
        let last = stderr_tail.last_lines(MAX_STDERR_LINES);
        let message = if last.is_empty() { status.to_string() } else { last.join("; ") };
        Err(PythonError::Failed { stderr: message })
    }
}

/// Returns the variables that a program inherits, and all settings of `pip`: the address of an index
/// may contain a password.
fn pip_environment(environment: &Environment) -> Vec<(OsString, OsString)> {
    let mut variables = inherited_environment(environment, "pip");
    let settings = environment.iter_os();
    let settings = settings.filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PIP_"));
    variables.extend(settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
    variables
}

/// Polls a callback until the future completes.
async fn poll_while<T>(future: impl Future<Output = T>, mut poll: impl FnMut()) -> T {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(future);
    loop {
        tokio::select! {
            done = &mut future => return done,
            _ = ticks.tick() => poll(),
        }
    }
}

/// Returns the size in bytes of all wheel files in a directory tree, complete or partial.
fn wheel_bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => wheel_bytes(&entry.path()),
            Ok(metadata) if entry.path().extension().is_some_and(|ext| ext == "whl") => {
                metadata.len()
            }
            Ok(_) | Err(_) => 0,
        })
        .sum()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Attack: files | the directory and `PYTHONPATH` contain `pip.py` and five more modules |
    /// Python imports none of them | Approval first
    #[tokio::test]
    async fn python_loads_no_module_of_the_working_directory_or_of_pythonpath() {
        let planted = tempfile::tempdir().unwrap();
        let marker = planted.path().join("executed");
        for module in ["pip", "zipfile", "tempfile", "shutil", "sitecustomize", "usercustomize"] {
            let code =
                format!("open({:?}, 'a').write('{module} ')\n", marker.display().to_string());
            std::fs::write(planted.path().join(format!("{module}.py")), code).unwrap();
        }
        let archive = planted.path().join("archive.zip");
        // An archive without entries.
        std::fs::write(&archive, [b"PK\x05\x06".as_slice(), &[0; 18]].concat()).unwrap();
        let folder = planted.path().to_str().unwrap();
        let environment = Environment::from_process();
        let variables = environment.iter().chain([("PYTHONPATH", folder), ("PIP_NO_INDEX", "1")]);
        let environment = Environment::from_pairs(variables);
        let found = Python::find(&environment).unwrap().program;
        let python = Python::with_program(found, &environment);
        let python = python.with_pip(planted.path()).await.unwrap();
        python.unpack(&archive, planted.path(), planted.path()).await.unwrap();
        let package = &super::super::bundles::DEFAULT_BUNDLE.packages()[0];
        let download = python.download(package, planted.path(), planted.path(), |_| ()).await;
        let stderr = download.unwrap_err().to_string();
        assert!(stderr.contains("No matching distribution"), "pip itself ran: {stderr}");
        assert_eq!(std::fs::read_to_string(&marker).unwrap_or_default(), "");
    }

    /// Attack: files | `PATH` contains relative directories | no Python of the directory runs |
    /// Approval first
    #[test]
    fn python_is_not_searched_in_relative_directories() {
        let environment = Environment::from_pairs([("PATH", ".:bin:")]);
        assert!(matches!(Python::find(&environment), Err(PythonError::Missing)));
    }

    /// Attack: secrets | the environment contains an API key while Python downloads a model |
    /// Python gets the settings of pip only | Secrets stay with their owner
    #[test]
    fn python_gets_the_settings_of_pip_and_no_other_secret() {
        let parent = Environment::from_pairs([
            ("PIP_INDEX_URL", "https://ada:secret@index.test/simple"),
            ("OPENAI_API_KEY", "sk-1"),
            ("PYTHONPATH", "/tmp"),
            ("HOME", "/home/ada"),
        ]);
        let mut names: Vec<OsString> =
            pip_environment(&parent).into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        assert_eq!(names, ["HOME", "PIP_INDEX_URL"]);
    }
}
