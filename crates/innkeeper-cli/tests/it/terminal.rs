//! Runs the program on a pseudo-terminal.

mod session;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::program::innkeeper;
pub(crate) use session::TerminalSession;

/// Number of rows of a terminal; the scrollback of a screen has the same number.
const ROWS: u16 = 200;

/// What the program wrote, and how it ended.
pub(crate) struct TerminalRun {
    pub(crate) status: ExitStatus,
    /// The text on the terminal, with its escape codes, and with newlines as the program wrote
    /// them.
    pub(crate) stdout: String,
    /// The text on stderr: a pipe, or a terminal of its own.
    pub(crate) stderr: String,
}

/// A line that a test types after the end of a question.
#[derive(Clone, Copy)]
pub(crate) struct Reply {
    pub(crate) question_end: &'static str,
    pub(crate) line: &'static str,
}

impl Reply {
    fn is_due(self, output: &[u8]) -> bool {
        output.ends_with(self.question_end.as_bytes())
    }
}

/// A terminal: the program writes to the user's end, and the test reads the controller's end.
struct PseudoTerminal {
    controller: OwnedFd,
    user: OwnedFd,
}

impl PseudoTerminal {
    fn open(columns: u16) -> Self {
        let controller =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let user =
            rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())
                .unwrap();
        let size = Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&user, size).unwrap();
        Self { controller, user }
    }

    fn user_end(&self) -> Stdio {
        self.user.try_clone().unwrap().into()
    }

    /// Reads everything until no process has the user's end open.
    fn read_to_end(self) -> thread::JoinHandle<String> {
        self.reply_and_read_to_end([])
    }

    /// Reads everything, and types each line in turn when the text of its question appears.
    fn reply_and_read_to_end(
        self,
        replies: impl IntoIterator<Item = Reply>,
    ) -> thread::JoinHandle<String> {
        let Self { controller, user } = self;
        drop(user);
        let mut replies: VecDeque<Reply> = replies.into_iter().collect();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut chunk = [0; 4096];
            let mut controller = File::from(controller);
            // The system reports the end of a terminal as an input/output error.
            while let Ok(count @ 1..) = controller.read(&mut chunk) {
                bytes.extend_from_slice(&chunk[..count]);
                if let Some(reply) = replies.pop_front_if(|reply| reply.is_due(&bytes)) {
                    writeln!(controller, "{}", reply.line).unwrap();
                }
            }
            String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
        })
    }
}

/// Runs a command with stdout on a terminal, and stderr on a pipe.
pub(crate) fn run_on_terminal(args: &[&str], cwd: &Path, columns: u16) -> TerminalRun {
    run_command(innkeeper(args, cwd), columns)
}

/// Runs a prepared command with stdout on a terminal, and stderr on a pipe.
pub(crate) fn run_command(mut command: Command, columns: u16) -> TerminalRun {
    let terminal = PseudoTerminal::open(columns);
    command.env("TERM", "xterm-256color");
    command.stdin(Stdio::null()).stdout(terminal.user_end()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The command holds the user's end of the terminal.
    drop(command);
    let stdout = terminal.read_to_end();
    let stderr = io::read_to_string(child.stderr.take().unwrap()).unwrap();
    let status = child.wait().unwrap();
    TerminalRun { status, stdout: stdout.join().unwrap(), stderr }
}

/// Runs a command with stderr on a terminal, and stdout on a pipe; stdin has this text.
pub(crate) fn run_with_stderr_on_terminal(
    command: Command,
    stdin: &str,
    columns: u16,
) -> TerminalRun {
    run_with_stderr_on_terminal_while(command, columns, |child| {
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    })
}

/// Runs a command with stderr on a terminal, and does something while the program runs.
pub(crate) fn run_with_stderr_on_terminal_while(
    mut command: Command,
    columns: u16,
    action: impl FnOnce(&mut Child),
) -> TerminalRun {
    let terminal = PseudoTerminal::open(columns);
    command.env("TERM", "xterm-256color");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(terminal.user_end());
    let mut child = command.spawn().unwrap();
    drop(command);
    let stderr = terminal.read_to_end();
    action(&mut child);
    let _ = child.stdin.take();
    let stdout = io::read_to_string(child.stdout.take().unwrap()).unwrap();
    let status = child.wait().unwrap();
    TerminalRun { status, stdout, stderr: stderr.join().unwrap() }
}

/// Runs a command with stdin, stdout and stderr on one terminal.
pub(crate) fn run_in_terminal(command: Command, columns: u16) -> (ExitStatus, String) {
    run_in_terminal_while(command, columns, [], |_| {})
}

/// Runs a command as [`run_in_terminal`] does, and does something while the program runs.
pub(crate) fn run_in_terminal_while(
    mut command: Command,
    columns: u16,
    replies: impl IntoIterator<Item = Reply>,
    action: impl FnOnce(&mut Child),
) -> (ExitStatus, String) {
    let terminal = PseudoTerminal::open(columns);
    command.env("TERM", "xterm-256color");
    command.stdin(terminal.user_end()).stdout(terminal.user_end()).stderr(terminal.user_end());
    let mut child = command.spawn().unwrap();
    drop(command);
    let text = terminal.reply_and_read_to_end(replies);
    action(&mut child);
    let status = child.wait().unwrap();
    (status, text.join().unwrap())
}

/// Keys that a test types when the screen shows a text.
pub(crate) struct Typing {
    pub(crate) shown: &'static str,
    pub(crate) keys: &'static str,
}

/// Runs a command with stdin, stdout and stderr on one terminal, and types keys, in their order.
/// Returns the status of the program and each screen on which the test typed.
pub(crate) fn run_in_terminal_with_keys(
    mut command: Command,
    columns: u16,
    typing: &[Typing],
) -> (ExitStatus, Vec<String>) {
    let PseudoTerminal { controller, user } = PseudoTerminal::open(columns);
    let user_end = || Stdio::from(user.try_clone().unwrap());
    command.env("TERM", "xterm-256color");
    command.stdin(user_end()).stdout(user_end()).stderr(user_end());
    let mut child = command.spawn().unwrap();
    drop((command, user));
    let mut controller = File::from(controller);
    let (rows, columns) = (ROWS.try_into().unwrap(), columns.try_into().unwrap());
    let mut screen = vt100::Parser::new(rows, columns, 0);
    let mut chunk = [0; 4096];
    let (mut screens, mut remaining) = (Vec::new(), typing.iter().peekable());
    while let Ok(count @ 1..) = controller.read(&mut chunk) {
        screen.process(&chunk[..count]);
        let contents = screen.screen().contents();
        while let Some(typing) = remaining.next_if(|typing| contents.contains(typing.shown)) {
            controller.write_all(typing.keys.as_bytes()).unwrap();
            screens.push(contents.clone());
        }
    }
    assert!(remaining.peek().is_none(), "the screen shows:\n{}", screen.screen().contents());
    (child.wait().unwrap(), screens)
}

/// Returns the rows that a user sees on a terminal after this output, without empty rows at the
/// end. A line that is longer than the terminal has several rows.
pub(crate) fn screen_text(output: &str, columns: u16) -> String {
    let mut parser = vt100::Parser::new(ROWS.try_into().unwrap(), columns.try_into().unwrap(), 0);
    parser.process(output.replace('\n', "\r\n").as_bytes());
    let rows = parser.screen().rows(0, columns);
    let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
    rows.join("\n").trim_end().to_owned()
}
