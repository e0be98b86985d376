//! Asks the user questions on the terminal, one at a time.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{Mutex, oneshot};

/// Maximum number of bytes read from a reply; a terminal sends at most 4,096 bytes of a line.
const MAX_REPLY_BYTES: u64 = 8 << 10;

/// Asks questions. Implemented by the terminal, and by scripts in tests.
#[async_trait]
pub(crate) trait QuestionSource: Send + Sync {
    /// Shows a text and returns the line that the user enters, without white space around it.
    /// Returns `None` at the end of the input. Dropping the future withdraws the question.
    async fn prompt(&self, question: &str) -> io::Result<Option<String>>;
}

/// The terminal on stdin and stderr. Clones share the terminal.
#[derive(Clone, Debug, Default)]
pub(crate) struct TerminalQuestions {
    // Waits for one line of stdin. The wait of a withdrawn question goes on, because nothing can
    // end it; the next question gets its line.
    pending_line: Arc<Mutex<Option<LineReceiver>>>,
}

type LineReceiver = oneshot::Receiver<io::Result<Option<String>>>;

impl TerminalQuestions {
    /// Returns the terminal; `None` if stdin or stderr is no terminal.
    pub(crate) fn open() -> Option<Self> {
        (io::stdin().is_terminal() && io::stderr().is_terminal()).then(Self::default)
    }
}

#[async_trait]
impl QuestionSource for TerminalQuestions {
    async fn prompt(&self, question: &str) -> io::Result<Option<String>> {
        let mut pending_line = self.pending_line.lock().await;
        show(question)?;
        let mut open_line = OpenLine { is_answered: false };
        let receiver = match pending_line.as_mut() {
            Some(receiver) => receiver,
            None => pending_line.insert(start_reading()?),
        };
        let line = receiver.await;
        open_line.is_answered = true;
        *pending_line = None;
        line.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
    }
}

/// Ends the line of a withdrawn question when dropped.
struct OpenLine {
    is_answered: bool,
}

impl Drop for OpenLine {
    fn drop(&mut self) {
        if !self.is_answered {
            // A closed stderr is no reason to fail.
            let _ = io::stderr().lock().write_all(b"(withdrawn)\n");
        }
    }
}

fn show(question: &str) -> io::Result<()> {
    // Input typed before the question is not a reply to the question.
    #[cfg(unix)]
    rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush)?;
    let mut stderr = io::stderr().lock();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()
}

/// Reads one line in a thread of its own. A signal can end the program while the user decides; the
/// thread ends with the process.
fn start_reading() -> io::Result<LineReceiver> {
    let (sender, receiver) = oneshot::channel();
    std::thread::Builder::new().name("ask".to_owned()).spawn(move || {
        sender.send(read_line()).unwrap_or_default();
    })?;
    Ok(receiver)
}

fn read_line() -> io::Result<Option<String>> {
    let mut stdin = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        let mut chunk = Vec::new();
        (&mut stdin).take(MAX_REPLY_BYTES).read_until(b'\n', &mut chunk)?;
        if chunk.is_empty() && line.is_empty() {
            return Ok(None);
        }
        let ended = chunk.is_empty() || chunk.ends_with(b"\n");
        // The rest of a longer line is read, so that the next question does not get it.
        if line.len() < MAX_REPLY_BYTES as usize {
            line.append(&mut chunk);
        }
        if ended {
            return Ok(Some(String::from_utf8_lossy(&line).trim().to_owned()));
        }
    }
}

pub(crate) fn is_yes(reply: &str) -> bool {
    matches!(reply.to_ascii_lowercase().as_str(), "y" | "yes")
}
