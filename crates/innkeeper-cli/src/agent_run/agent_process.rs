//! The process of an agent.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{Instant, sleep_until, timeout};

/// Maximum size in bytes of the output that is compared.
const MAX_OUTPUT_BYTES: usize = 16 << 20;

/// Time for the output of processes that the agent left.
const OUTPUT_GRACE: Duration = Duration::from_secs(1);

/// Time for an agent to end after SIGTERM.
const END_GRACE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct AgentEnd {
    /// The exit code; `None` after a signal.
    pub(crate) exit_code: Option<i32>,
    signal: Option<i32>,
    /// What the agent wrote to stdout.
    pub(crate) stdout: String,
    /// The time from the start to the end.
    pub(super) duration: Duration,
}

impl AgentEnd {
    /// Returns why the run failed; `None` for a success.
    pub(crate) fn failure(&self) -> Option<String> {
        match (self.exit_code, self.signal) {
            (Some(0), _) => None,
            (Some(code), _) => Some(format!("the agent ended with exit code {code}")),
            (None, Some(signal)) => Some(format!("signal {signal} ended the agent")),
            (None, None) => Some("the agent ended without an exit code".to_owned()),
        }
    }
}

/// A running agent. Its stdin and stderr are those of this program.
#[derive(Debug)]
pub(crate) struct AgentProcess {
    child: Child,
    stdout: Option<ChildStdout>,
    started_at: Instant,
    output: Vec<u8>,
}

impl AgentProcess {
    /// Starts an agent with further variables.
    ///
    /// # Errors
    ///
    /// The program does not exist or does not start.
    #[expect(clippy::disallowed_methods, reason = "the agent is the user's program, not a server")]
    pub(crate) fn start(
        command: &[OsString],
        variables: &[(&'static str, OsString)],
    ) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut child = Command::new(program)
            .args(arguments)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take();
        Ok(Self { child, stdout, started_at: Instant::now(), output: Vec::new() })
    }

    /// Runs the agent to its end; `pass_on` gets its output as it comes, until it fails: a closed pipe
    /// must not lose the run.
    ///
    /// # Errors
    ///
    /// The output is too long.
    pub(crate) async fn run(
        &mut self,
        mut pass_on: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<AgentEnd> {
        let mut stdout = self.stdout.take();
        let mut buffer = vec![0; 64 << 10];
        let mut status = None;
        let mut output_end = Instant::now();
        let mut is_passed_on = true;
        while let Some(reader) = &mut stdout {
            let count = tokio::select! {
                count = reader.read(&mut buffer) => count?,
                ended = self.child.wait(), if status.is_none() => {
                    status = Some(ended?);
                    output_end = Instant::now() + OUTPUT_GRACE;
                    continue;
                }
                () = sleep_until(output_end), if status.is_some() => 0,
            };
            if count == 0 {
                stdout = None;
            }
            let Some(bytes) = buffer.get(..count) else { continue };
            if self.output.len() + bytes.len() > MAX_OUTPUT_BYTES {
                let text = format!("the agent wrote more than {} MiB", MAX_OUTPUT_BYTES >> 20);
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
            }
            self.output.extend_from_slice(bytes);
            is_passed_on = is_passed_on && pass_on(bytes).is_ok();
        }
        let status = match status {
            Some(status) => status,
            None => self.child.wait().await?,
        };
        Ok(self.end_of(status))
    }

    /// Ends the agent: SIGTERM, and after a few seconds SIGKILL.
    pub(crate) async fn stop(&mut self) {
        let pid = self.child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        if let Some(pid) = pid {
            // The agent may have ended.
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
            if timeout(END_GRACE, self.child.wait()).await.is_err() {
                self.child.kill().await.ok();
            }
        }
    }

    fn end_of(&mut self, status: ExitStatus) -> AgentEnd {
        AgentEnd {
            exit_code: status.code(),
            signal: status.signal(),
            stdout: String::from_utf8_lossy(&self.output).into_owned(),
            duration: self.started_at.elapsed(),
        }
    }
}
