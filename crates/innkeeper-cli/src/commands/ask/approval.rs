//! A person at the terminal says yes or no to each call.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::sync::Arc;

use innkeeper_agent::safety::{Approval, Approver, Decision};
use tokio::sync::oneshot;

use crate::args::Approve;
use crate::exit::Failure;
use crate::output::inline;

/// The longest answer that is read, in bytes: a word.
const ANSWER: u64 = 64;

/// Who decides, where anyone has to.
pub(super) fn of(approve: Approve) -> Result<Option<Arc<dyn Approver>>, Failure> {
    match approve {
        Approve::All | Approve::Never => Ok(None),
        Approve::Ask if io::stdin().is_terminal() && io::stderr().is_terminal() => {
            Ok(Some(Arc::new(Person)))
        }
        Approve::Ask => Err(Failure::usage("`--approve ask` needs a terminal to ask at")
            .hint("`--approve all` runs every call, `--approve never` none")),
    }
}

struct Person;

#[async_trait::async_trait]
impl Approver for Person {
    async fn decide(&self, call: Approval<'_>) -> Decision {
        let question = format!("Run `{}` {}? [y/N] ", inline(call.tool), inline(call.arguments));
        let (say, said) = oneshot::channel();
        // A signal ends the program while a person thinks; the thread goes with it.
        let asked = std::thread::Builder::new().name("ask".to_owned()).spawn(move || {
            say.send(ask(&question)).unwrap_or_default();
        });
        match (asked, said.await) {
            (Ok(_), Ok(Ok(true))) => Decision::Run,
            (Ok(_), Ok(Ok(false))) => Decision::Refuse("the user said no".to_owned()),
            (Ok(_), Ok(Err(_)) | Err(_)) | (Err(_), _) => {
                Decision::Refuse("the user could not be asked".to_owned())
            }
        }
    }
}

fn ask(question: &str) -> io::Result<bool> {
    let mut stderr = io::stderr().lock();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()?;
    drop(stderr);
    // What was typed before the question is no answer to it.
    #[cfg(unix)]
    rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush)?;
    let mut stdin = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        let mut piece = Vec::new();
        (&mut stdin).take(ANSWER).read_until(b'\n', &mut piece)?;
        let ended = piece.is_empty() || piece.ends_with(b"\n");
        line.append(&mut piece);
        if ended {
            break;
        }
        // More than a word is no answer: its rest must not become the next one.
        line.truncate(ANSWER as usize);
        line.push(b'?');
    }
    let line = String::from_utf8_lossy(&line);
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
