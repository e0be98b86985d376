//! A second process of this program, with a line protocol over its pipes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use innkeeper_testkit::ProcessTag;

/// Maximum wait for one line of a child process.
const LINE_TIMEOUT: Duration = Duration::from_secs(60);

/// A child process that receives and sends lines.
pub(crate) struct ChildProcess {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl ChildProcess {
    /// Starts this program in another role; the environment contains the process tag.
    #[expect(clippy::disallowed_methods, reason = "the program starts and kills its own processes")]
    pub(crate) fn start(arguments: &[&str], tag: &ProcessTag) -> Result<Self, String> {
        let program = std::env::current_exe()
            .map_err(|error| format!("cannot determine the executable path: {error}"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .env(ProcessTag::VARIABLE, tag.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start a child process: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a child process has no pipes".to_owned());
        };
        // The protocol has one line in flight. A thread reads the line, so that the wait can time
        // out.
        let (sender, lines) = sync_channel(1);
        std::thread::spawn(move || {
            let output_lines = BufReader::new(output).lines().map_while(Result::ok);
            output_lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
        });
        Ok(Self { child, input, lines })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send_line(&mut self, line: &str) -> Result<(), String> {
        writeln!(self.input, "{line}").map_err(|error| format!("a child process exited: {error}"))
    }

    pub(crate) fn recv_line(&self) -> Result<String, String> {
        let line = self.lines.recv_timeout(LINE_TIMEOUT);
        line.map_err(|_| format!("a child process sent no line for {} s", LINE_TIMEOUT.as_secs()))
    }

    /// Receives a line that starts with `command`; returns the rest of the line.
    pub(crate) fn expect_line(&self, command: &str) -> Result<String, String> {
        let line = self.recv_line()?;
        let rest = line.strip_prefix(command).map(|rest| rest.trim_start().to_owned());
        rest.ok_or(line)
    }

    /// Kills the process with SIGKILL and waits for its exit.
    pub(crate) fn kill(&mut self) -> Result<(), String> {
        self.child.kill().map_err(|error| format!("kill: {error}"))?;
        self.child.wait().map_err(|error| format!("wait: {error}"))?;
        Ok(())
    }

    /// Closes the input of the process and waits for its exit.
    pub(crate) fn close(self) -> Result<(), String> {
        let Self { mut child, input, .. } = self;
        drop(input);
        let status = child.wait().map_err(|error| format!("wait: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("a child process exited with {status}")) }
    }
}
