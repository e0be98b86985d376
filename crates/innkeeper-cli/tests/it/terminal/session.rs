//! A program on a terminal, with keys of the test and the screen that a user sees.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use tokio::time::Instant;
use vt100::{Parser, Screen};

use super::PseudoTerminal;

/// Maximum time in which a screen shows an expected state on a loaded machine.
const SCREEN_LIMIT: Duration = Duration::from_secs(20);

/// Interval between two checks of an exit.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A running program on a terminal. A drop kills the program.
pub(crate) struct TerminalSession {
    child: KilledChild,
    controller: File,
    parser: Parser,
}

impl TerminalSession {
    /// Starts a command in a session of its own, with stdin, stdout and stderr on the controlling
    /// terminal of this many rows and columns.
    pub(crate) fn start(command: &Command, size: (u16, u16)) -> Self {
        Self::start_without_session(with_own_session(command), size)
    }

    /// Starts a command on a terminal that is not its controlling terminal.
    pub(crate) fn start_without_session(mut command: Command, (rows, columns): (u16, u16)) -> Self {
        let terminal = PseudoTerminal::open(columns);
        set_size(&terminal.user, (rows, columns));
        command.env("TERM", "xterm-256color");
        command.stdin(terminal.user_end()).stdout(terminal.user_end()).stderr(terminal.user_end());
        let child = command.spawn().unwrap();
        let PseudoTerminal { controller, user } = terminal;
        drop((command, user));
        let flags = fcntl_getfl(&controller).unwrap();
        fcntl_setfl(&controller, flags | OFlags::NONBLOCK).unwrap();
        let parser = Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 0);
        Self { child: KilledChild(child), controller: controller.into(), parser }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.0.id()
    }

    pub(crate) fn screen(&self) -> &Screen {
        self.parser.screen()
    }

    /// Whether the terminal edits and echoes lines, as before the start of the program.
    pub(crate) fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.controller).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Returns the rows of the screen without spaces at their ends.
    pub(crate) fn text(&self) -> String {
        let (_, columns) = self.screen().size();
        let rows = self.screen().rows(0, columns.get());
        rows.map(|row| row.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    /// Types characters or keys as a terminal sends them, such as `\r` for Enter.
    pub(crate) fn type_keys(&mut self, keys: &str) {
        let mut bytes = keys.as_bytes();
        while !bytes.is_empty() {
            match self.controller.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.read_for(Duration::from_millis(1));
                }
                Err(error) => panic!("cannot type `{}`: {error}", keys.escape_debug()),
            }
        }
    }

    /// Reads the output that arrives within a time, or until the program closes the terminal. Returns
    /// whether output arrived.
    fn read_for(&mut self, limit: Duration) -> bool {
        let mut ready = [PollFd::new(&self.controller, PollFlags::IN)];
        let timeout = Timespec::try_from(limit).unwrap();
        if poll(&mut ready, Some(&timeout)).unwrap() == 0 {
            return false;
        }
        let mut chunk = [0; 1 << 16];
        // The system reports the end of a terminal as an input/output error.
        match self.controller.read(&mut chunk) {
            Ok(count @ 1..) => {
                self.parser.process(&chunk[..count]);
                true
            }
            Ok(0) | Err(_) => false,
        }
    }

    /// Shows the output for a time.
    pub(crate) fn watch(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(left) =
            end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
        {
            self.read_for(left);
        }
    }

    /// Waits until the screen satisfies a condition.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, description: &str, condition: impl Fn(&Self) -> bool) {
        self.wait_within(SCREEN_LIMIT, description, condition);
    }

    /// Waits until the screen satisfies a condition; returns the time.
    #[track_caller]
    pub(crate) fn wait_within(
        &mut self,
        limit: Duration,
        description: &str,
        condition: impl Fn(&Self) -> bool,
    ) -> Duration {
        let start = Instant::now();
        loop {
            if condition(self) {
                return start.elapsed();
            }
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() {
                panic!("no {description} within {limit:?}; the screen:\n{}", self.text());
            }
            if !self.read_for(left.min(Duration::from_millis(20)))
                && let Some(status) = self.child.0.try_wait().unwrap()
                && !self.read_for(Duration::ZERO)
            {
                assert!(condition(self), "{status}, no {description}:\n{}", self.text());
            }
        }
    }

    /// Waits until the screen has a text.
    #[track_caller]
    pub(crate) fn wait_for_text(&mut self, text: &str) {
        self.wait_for(&format!("text `{text}`"), |session| session.text().contains(text));
    }

    /// Changes the size of the terminal; the system tells the program if the terminal is the
    /// controlling terminal of the program.
    pub(crate) fn resize(&mut self, (rows, columns): (u16, u16)) {
        // Output for the old size must not change the screen of the new size.
        while self.read_for(Duration::from_millis(50)) {}
        set_size(&self.controller, (rows, columns));
        self.parser.set_size(rows.try_into().unwrap(), columns.try_into().unwrap());
    }

    /// Waits until the program exits, and shows its last output.
    #[track_caller]
    pub(crate) fn wait_exit(&mut self, limit: Duration) -> ExitStatus {
        let start = Instant::now();
        loop {
            while self.read_for(Duration::ZERO) {}
            if let Some(status) = self.child.0.try_wait().unwrap() {
                while self.read_for(Duration::ZERO) {}
                return status;
            }
            assert!(start.elapsed() < limit, "the program runs after {limit:?}:\n{}", self.text());
            self.read_for(POLL_INTERVAL);
        }
    }

    /// Closes the terminal, as a terminal emulator does when the user closes its window, and waits
    /// until the program exits.
    #[track_caller]
    pub(crate) fn close_terminal(self, limit: Duration) -> ExitStatus {
        let Self { mut child, controller, .. } = self;
        drop(controller);
        let start = Instant::now();
        loop {
            if let Some(status) = child.0.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < limit, "the program runs {limit:?} after its terminal");
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// A child process that a drop kills.
struct KilledChild(Child);

impl Drop for KilledChild {
    fn drop(&mut self) {
        // The process may already have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn set_size(terminal: impl AsFd, (rows, columns): (u16, u16)) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).unwrap();
}

/// Returns the command in a session of its own, whose controlling terminal is stdin: the system tells
/// the program about a new size and about the end of the terminal.
#[expect(clippy::disallowed_methods, reason = "`setsid` starts the program of the test")]
fn with_own_session(command: &Command) -> Command {
    let mut wrapped = Command::new("setsid");
    wrapped.arg("--ctty").arg(command.get_program()).args(command.get_args()).env_clear();
    wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(dir) = command.get_current_dir() {
        wrapped.current_dir(dir);
    }
    wrapped
}
