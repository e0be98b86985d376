//! Python as downloader: `pip` for packages, `zipfile` for archives.
//!
//! `pip` knows the user's index, mirrors and proxies, so this project names no registry and needs
//! no archive library.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use innkeeper_host::Environment;
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

/// A `python3` with `pip`.
#[derive(Clone, Debug)]
pub(crate) struct Python {
    program: PathBuf,
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
    /// Finds `python3` on the `PATH`.
    ///
    /// # Errors
    ///
    /// There is no `python3`, or the path of this executable is unknown.
    pub(crate) fn find(environment: &Environment) -> Result<Self, PythonError> {
        let path = environment.get("PATH").unwrap_or_default();
        let names = std::env::split_paths(path).map(|dir| dir.join("python3"));
        let program = names.into_iter().find(|program| program.is_file());
        let program = program.ok_or(PythonError::Missing)?;
        let death_link =
            ParentDeathLink::this_program().map_err(|source| PythonError::Spawn { source })?;
        Ok(Self { program, parent_death_link: death_link })
    }

    /// Uses another program in place of Python.
    #[cfg(test)]
    pub(crate) fn with_program(program: PathBuf) -> Self {
        Self { program, parent_death_link: ParentDeathLink::disabled() }
    }

    /// Resolves the interpreter itself, if the interpreter has `pip`. The program on the `PATH` may
    /// be a script that starts the interpreter as a child process, which would outlive the script.
    pub(crate) async fn with_pip(self) -> Result<Self, PythonError> {
        let script = "import pip, sys; print(sys.executable or '')";
        let output = match self.run(["-c", script], None, || ()).await {
            Err(PythonError::Failed { .. }) => return Err(PythonError::NoPip),
            other => other?,
        };
        let executable = output.last_lines(1).into_iter().next().map(PathBuf::from);
        let program = executable.filter(|program| program.is_file()).unwrap_or(self.program);
        Ok(Self { program, parent_death_link: self.parent_death_link })
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
        self.run(args, Some(scratch), || on_progress(wheel_bytes(scratch))).await.map(drop)
    }

    /// Unpacks an archive to a directory.
    pub(crate) async fn unpack(&self, archive: &Path, into: &Path) -> Result<(), PythonError> {
        let args = [OsStr::new("-m"), "zipfile".as_ref(), "-e".as_ref(), archive.as_ref()];
        self.run(args.into_iter().chain([into.as_os_str()]), None, || ()).await.map(drop)
    }

    /// Runs Python until the process exits; returns the end of stdout.
    async fn run(
        &self,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        scratch: Option<&Path>,
        poll: impl FnMut(),
    ) -> Result<OutputTail, PythonError> {
        let mut command = self.parent_death_link.command(self.program.as_os_str());
        for arg in args {
            command.arg(OsString::from(arg.as_ref()));
        }
        if let Some(scratch) = scratch {
            command.env("TMPDIR", scratch);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = |source| PythonError::Spawn { source };
        let mut child = command.spawn().map_err(start)?;
        let (stdout_tail, stderr_tail) = (OutputTail::default(), OutputTail::default());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
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
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => wheel_bytes(&entry.path()),
        Ok(metadata) if entry.path().extension().is_some_and(|ext| ext == "whl") => metadata.len(),
        Ok(_) | Err(_) => 0,
    };
    entries.map(size).sum()
}
