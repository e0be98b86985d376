//! Python as the fetcher: `pip` knows its own index, mirrors and proxies, and `zipfile` unpacks.
//!
//! So the project names no registry, and needs no library for archives that it reads once.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use innkeeper_host::Environment;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::leash::Leash;
use super::offer::Package;
use super::tail::Tail;

/// How long one run may take: 160 MB over a slow line.
const PATIENCE: Duration = Duration::from_secs(60 * 60);
/// How often a download is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// Lines of what Python said that are kept in an error.
const SAID: usize = 4;

/// `python3` with its `pip`.
#[derive(Clone, Debug)]
pub(crate) struct Python {
    program: PathBuf,
    leash: Leash,
}

/// Python did not do it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PythonError {
    #[error("`python3` is not on the `PATH`; its `pip` fetches the packages")]
    Missing,
    #[error("`python3` has no `pip`, which fetches the packages")]
    NoPip,
    #[error("`python3` cannot be started")]
    Start { source: io::Error },
    #[error("`python3` was not done after {} minutes", PATIENCE.as_secs() / 60)]
    Late,
    /// Its last words.
    #[error("{said}")]
    Failed { said: String },
}

impl Python {
    /// The one that the `PATH` of an environment leads to.
    ///
    /// # Errors
    ///
    /// There is none, or this program cannot find itself.
    pub(crate) fn find(environment: &Environment) -> Result<Self, PythonError> {
        let path = environment.get("PATH").unwrap_or_default();
        let names = std::env::split_paths(path).map(|folder| folder.join("python3"));
        let program = names.into_iter().find(|program| program.is_file());
        let program = program.ok_or(PythonError::Missing)?;
        let leash = Leash::this_program().map_err(|source| PythonError::Start { source })?;
        Ok(Self { program, leash })
    }

    /// A program that takes Python's place.
    #[cfg(test)]
    pub(crate) fn at(program: PathBuf) -> Self {
        Self { program, leash: Leash::none() }
    }

    /// The interpreter itself, if it has `pip`. What the `PATH` leads to may be a script that starts
    /// it as its child, which would outlive the script.
    pub(crate) async fn with_pip(self) -> Result<Self, PythonError> {
        let question = "import pip, sys; print(sys.executable or '')";
        let told = match self.run(["-c", question], None, || ()).await {
            Err(PythonError::Failed { .. }) => return Err(PythonError::NoPip),
            other => other?,
        };
        let own = told.lines(1).into_iter().next().map(PathBuf::from);
        let program = own.filter(|program| program.is_file()).unwrap_or(self.program);
        Ok(Self { program, leash: self.leash })
    }

    /// Downloads a package into a folder; `seen` is told how many bytes of it there are. What `pip`
    /// needs meanwhile lies in `scratch`.
    pub(crate) async fn download(
        &self,
        package: &Package,
        into: &Path,
        scratch: &Path,
        mut seen: impl FnMut(u64),
    ) -> Result<(), PythonError> {
        let wanted = format!("{}=={}", package.name, package.version);
        let words = "-m pip download --no-deps --only-binary :all: --no-input --quiet \
                     --disable-pip-version-check --dest";
        let words = words.split(' ').map(OsStr::new);
        let args = words.chain([into.as_os_str(), OsStr::new(&wanted)]);
        self.run(args, Some(scratch), || seen(wheels(scratch))).await.map(drop)
    }

    /// Unpacks an archive into a folder.
    pub(crate) async fn unpack(&self, archive: &Path, into: &Path) -> Result<(), PythonError> {
        let args = [OsStr::new("-m"), "zipfile".as_ref(), "-e".as_ref(), archive.as_ref()];
        self.run(args.into_iter().chain([into.as_os_str()]), None, || ()).await.map(drop)
    }

    /// Runs it to its end; gives back the end of what it printed.
    async fn run(
        &self,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        scratch: Option<&Path>,
        look: impl FnMut(),
    ) -> Result<Tail, PythonError> {
        let mut command = self.leash.command(self.program.as_os_str());
        for arg in args {
            command.arg(OsString::from(arg.as_ref()));
        }
        if let Some(scratch) = scratch {
            command.env("TMPDIR", scratch);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = |source| PythonError::Start { source };
        let mut child = command.spawn().map_err(start)?;
        let (printed, said) = (Tail::default(), Tail::default());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let work = async {
            tokio::join!(printed.follow_any(stdout), said.follow_any(stderr));
            child.wait().await
        };
        let done = timeout(PATIENCE, looking(work, look)).await;
        let status = done.map_err(|_| PythonError::Late)?.map_err(start)?;
        if status.success() {
            return Ok(printed);
        }
        let last = said.lines(SAID);
        let said = if last.is_empty() { status.to_string() } else { last.join("; ") };
        Err(PythonError::Failed { said })
    }
}

/// Waits for the work and looks at it meanwhile.
async fn looking<T>(work: impl Future<Output = T>, mut look: impl FnMut()) -> T {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = ticks.tick() => look(),
        }
    }
}

/// Bytes of the packages that are being written somewhere below a folder.
fn wheels(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => wheels(&entry.path()),
        Ok(about) if entry.path().extension().is_some_and(|it| it == "whl") => about.len(),
        Ok(_) | Err(_) => 0,
    };
    entries.map(size).sum()
}
