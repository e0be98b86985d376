//! Another process of this program, and the two ways to it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use innkeeper_testkit::Nonce;

/// The longest a partner may take over one line.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that is told lines and says lines.
pub(crate) struct Partner {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Partner {
    /// Starts this program in another part; the nonce is in its environment.
    #[expect(clippy::disallowed_methods, reason = "the soak starts and kills its parts itself")]
    pub(crate) fn start(arguments: &[&str], nonce: &Nonce) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .env(Nonce::VARIABLE, nonce.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("a part does not start: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a part has no pipes".to_owned());
        };
        // One line is under way at a time; a thread reads it so that waiting can end.
        let (sender, lines) = sync_channel(1);
        std::thread::spawn(move || {
            let said = BufReader::new(output).lines().map_while(Result::ok);
            said.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
        });
        Ok(Self { child, input, lines })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn tell(&mut self, line: &str) -> Result<(), String> {
        writeln!(self.input, "{line}").map_err(|error| format!("a part is gone: {error}"))
    }

    pub(crate) fn hear(&self) -> Result<String, String> {
        let line = self.lines.recv_timeout(PATIENCE);
        line.map_err(|_| format!("a part says nothing for {} s", PATIENCE.as_secs()))
    }

    /// Hears a line of this kind; what stands behind the word.
    pub(crate) fn hear_of(&self, word: &str) -> Result<String, String> {
        let line = self.hear()?;
        let rest = line.strip_prefix(word).map(|rest| rest.trim_start().to_owned());
        rest.ok_or(line)
    }

    /// Kills it with SIGKILL and waits for it.
    pub(crate) fn kill(&mut self) -> Result<(), String> {
        self.child.kill().map_err(|error| format!("kill: {error}"))?;
        self.child.wait().map_err(|error| format!("wait: {error}"))?;
        Ok(())
    }

    /// Closes its input, which ends it, and waits for it.
    pub(crate) fn dismiss(self) -> Result<(), String> {
        let Self { mut child, input, .. } = self;
        drop(input);
        let status = child.wait().map_err(|error| format!("wait: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("a part ended with {status}")) }
    }
}
