//! Child programs of tasks: the only place that starts programs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::TaskResult;

/// The variables that `cargo run` sets for this program. The build script of `ring` runs again when they
/// change: with them, a build by a task and a build from a shell would each compile half of the workspace
/// again.
const CARGO_RUN_VARIABLES: &[&str] = &[
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_PKG_AUTHORS",
    "CARGO_PKG_DESCRIPTION",
    "CARGO_PKG_HOMEPAGE",
    "CARGO_PKG_LICENSE",
    "CARGO_PKG_LICENSE_FILE",
    "CARGO_PKG_NAME",
    "CARGO_PKG_README",
    "CARGO_PKG_REPOSITORY",
    "CARGO_PKG_RUST_VERSION",
    "CARGO_PKG_VERSION",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
];

/// A program that runs in the root of the repository.
#[derive(Debug)]
pub(crate) struct Program {
    command: Command,
    display_line: String,
}

impl Program {
    /// Creates a program; a name without a slash is looked up in `PATH`.
    #[expect(clippy::disallowed_methods, reason = "the only place where tasks start programs")]
    pub(crate) fn new(program: impl AsRef<Path>) -> Self {
        let program = program.as_ref();
        let mut command = Command::new(program);
        command.current_dir(repository_root()).stdin(Stdio::null());
        for variable in CARGO_RUN_VARIABLES {
            command.env_remove(variable);
        }
        let display_line = program
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Self { command, display_line }
    }

    /// Creates a cargo command with the words of a line as arguments.
    pub(crate) fn cargo(line: &str) -> Self {
        Self::new("cargo").args(line)
    }

    /// Adds the words of a line as arguments.
    pub(crate) fn args(self, line: &str) -> Self {
        line.split_whitespace().fold(self, Self::arg)
    }

    /// Adds one argument.
    pub(crate) fn arg(mut self, argument: impl AsRef<str>) -> Self {
        let argument = argument.as_ref();
        self.command.arg(argument);
        self.display_line.push(' ');
        self.display_line.push_str(argument);
        self
    }

    /// Adds a path as an argument.
    pub(crate) fn path_arg(mut self, path: &Path) -> Self {
        self.command.arg(path);
        self.display_line.push_str(" …");
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Leaves the input open, for a program that ends with its input.
    pub(crate) fn with_open_input(mut self) -> Self {
        self.command.stdin(Stdio::piped());
        self
    }

    /// Sets the working directory.
    pub(crate) fn current_dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Runs the program on this terminal.
    ///
    /// # Errors
    ///
    /// The program does not start, or exits with a failure.
    pub(crate) fn run(mut self) -> TaskResult {
        let status = self.command.status();
        let status =
            status.map_err(|error| format!("cannot start `{}`: {error}", self.display_line))?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("`{}` failed ({status})", self.display_line))
        }
    }

    /// Runs the program with its output in a file; an error contains the end of that file.
    ///
    /// # Errors
    ///
    /// The program does not start, or exits with a failure.
    pub(crate) fn run_with_log(mut self, log: &Path) -> TaskResult {
        let open = |error| format!("`{}`: {error}", relative_path(log));
        let file = File::options().create(true).append(true).open(log).map_err(open)?;
        self.command.stdout(file.try_clone().map_err(open)?).stderr(file);
        let command_line = self.display_line.clone();
        self.run().map_err(|problem| {
            let text = std::fs::read_to_string(log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let tail = lines[lines.len().saturating_sub(15)..].join("\n  ");
            format!("{problem}; end of the output of `{command_line}`:\n  {tail}")
        })
    }

    /// Runs the program and returns its standard output.
    ///
    /// # Errors
    ///
    /// The program does not start, or exits with a failure; the error contains its standard error.
    pub(crate) fn output(mut self) -> TaskResult<String> {
        let output = self.command.output();
        let output =
            output.map_err(|error| format!("cannot start `{}`: {error}", self.display_line))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(format!("`{}` failed ({}): {}", self.display_line, output.status, stderr.trim()))
    }
}

/// A program that runs until the value is dropped.
#[derive(Debug)]
pub(crate) struct RunningProgram {
    child: Child,
    log: PathBuf,
    display_line: String,
}

/// Time for a running program to end after a request to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval of the checks of a running program.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

impl Program {
    /// Starts the program with its output in a new file.
    ///
    /// # Errors
    ///
    /// The program does not start, or the file cannot be written.
    pub(crate) fn start(mut self, log: &Path) -> TaskResult<RunningProgram> {
        let problem = |error| format!("`{}`: {error}", relative_path(log));
        let file = File::create(log).map_err(problem)?;
        self.command.stdout(file.try_clone().map_err(problem)?).stderr(file);
        let display_line = self.display_line;
        let child = self.command.spawn();
        let child = child.map_err(|error| format!("cannot start `{display_line}`: {error}"))?;
        Ok(RunningProgram { child, log: log.to_owned(), display_line })
    }
}

impl RunningProgram {
    /// Waits until the output contains a line with this text and returns the rest of the line.
    ///
    /// # Errors
    ///
    /// The program ends before the line, or the line does not arrive in time.
    pub(crate) fn wait_for(&mut self, text: &str, limit: Duration) -> TaskResult<String> {
        let mut waited = Duration::ZERO;
        loop {
            let ended = self.child.try_wait().map_err(|error| error.to_string())?;
            let output = std::fs::read_to_string(&self.log).unwrap_or_default();
            // A line without an end is incomplete.
            let mut lines = output.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            if let Some((_, rest)) = lines.find_map(|line| line.split_once(text)) {
                return Ok(rest.trim_end().to_owned());
            }
            if let Some(status) = ended {
                return Err(format!("`{}` ended ({status}):\n{output}", self.display_line));
            }
            if waited >= limit {
                let seconds = limit.as_secs();
                return Err(format!("`{}` prints no `{text}` in {seconds} s", self.display_line));
            }
            std::thread::sleep(CHECK_INTERVAL);
            waited += CHECK_INTERVAL;
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let stopping = Program::new("kill").arg(self.child.id().to_string()).run();
        let mut waited = Duration::ZERO;
        while stopping.is_ok() && waited < STOP_TIMEOUT {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(CHECK_INTERVAL);
            waited += CHECK_INTERVAL;
        }
        // The program has ended, or it ends now.
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// The end of a program with a time limit.
#[derive(Debug)]
pub(crate) struct MeasuredRun {
    pub(crate) elapsed: Duration,
    /// The exit code; `None` after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Program {
    /// Creates a program that `timeout` ends after a number of seconds, with its process group.
    pub(crate) fn with_time_limit(program: impl AsRef<Path>, seconds: u64) -> Self {
        Self::new("timeout")
            .arg("--kill-after=5")
            .arg(seconds.to_string())
            .path_arg(program.as_ref())
    }

    /// Limits the address space of the program and of each of its children. The arguments so far are
    /// kept, the environment and the directory are set afterwards.
    pub(crate) fn with_memory_limit(self, bytes: u64) -> Self {
        let mut limited = Self::new("prlimit").arg(format!("--as={bytes}"));
        limited.command.arg(self.command.get_program()).args(self.command.get_args());
        limited.display_line = self.display_line;
        limited
    }

    /// Runs the program and measures its time. The output goes through files in a directory,
    /// because a process that the program leaves behind keeps a pipe open.
    ///
    /// # Errors
    ///
    /// The program does not start, or a file cannot be written or read.
    #[expect(clippy::disallowed_methods, reason = "the time of a program is real time")]
    pub(crate) fn measure(mut self, dir: &Path) -> TaskResult<MeasuredRun> {
        let (out, err) = (dir.join("stdout"), dir.join("stderr"));
        let problem = |error: std::io::Error| format!("`{}`: {error}", relative_path(dir));
        self.command.stdout(File::create(&out).map_err(problem)?);
        self.command.stderr(File::create(&err).map_err(problem)?);
        let started = Instant::now();
        let status = self.command.status();
        let status =
            status.map_err(|error| format!("cannot start `{}`: {error}", self.display_line))?;
        let elapsed = started.elapsed();
        let read = |path: &Path| std::fs::read(path).map_err(problem);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (stdout, stderr) = (text(read(&out)?), text(read(&err)?));
        Ok(MeasuredRun { elapsed, code: status.code(), stdout, stderr })
    }
}

/// The root of the repository.
pub(crate) fn repository_root() -> PathBuf {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_dir.parent().unwrap_or(manifest_dir).to_path_buf()
}

/// A path relative to the root of the repository.
pub(crate) fn relative_path(path: &Path) -> String {
    path.strip_prefix(repository_root()).unwrap_or(path).display().to_string()
}
