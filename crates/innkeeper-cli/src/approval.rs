//! Asks the user on the terminal to approve each call.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::sync::Arc;

use innkeeper_agent::safety::{ApprovalDecision, ApprovalRequest, Approver};
use tokio::sync::oneshot;

use crate::cli::ApprovalArg;
use crate::exit::CliError;
use crate::output::escape_inline;

/// Maximum number of bytes read from a reply; a reply is one word.
const MAX_ANSWER_BYTES: u64 = 64;

/// Returns the approver for `--approve`; `None` if every call runs.
pub(crate) fn approver_for(approve: ApprovalArg) -> Result<Option<Arc<dyn Approver>>, CliError> {
    match approve {
        ApprovalArg::All | ApprovalArg::Never => Ok(None),
        ApprovalArg::Ask if io::stdin().is_terminal() && io::stderr().is_terminal() => {
            Ok(Some(Arc::new(TerminalApprover)))
        }
        ApprovalArg::Ask => Err(CliError::usage("`--approve ask` needs a terminal")
            .with_hint("use `--approve all` to run every call, `--approve never` to run no calls")),
    }
}

struct TerminalApprover;

#[async_trait::async_trait]
impl Approver for TerminalApprover {
    async fn decide(&self, call: ApprovalRequest<'_>) -> ApprovalDecision {
        let question =
            format!("Run `{}` {}? [y/N] ", escape_inline(call.tool), escape_inline(call.arguments));
        let (say, reply) = oneshot::channel();
        // A signal can end the program while the user decides; the thread ends with the process.
        let asked = std::thread::Builder::new().name("ask".to_owned()).spawn(move || {
            say.send(confirm(&question)).unwrap_or_default();
        });
        match (asked, reply.await) {
            (Ok(_), Ok(Ok(true))) => ApprovalDecision::Approve,
            (Ok(_), Ok(Ok(false))) => ApprovalDecision::Deny("the user denied the call".to_owned()),
            (Ok(_), Ok(Err(_)) | Err(_)) | (Err(_), _) => {
                ApprovalDecision::Deny("the approval prompt failed".to_owned())
            }
        }
    }
}

fn confirm(question: &str) -> io::Result<bool> {
    let mut stderr = io::stderr().lock();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()?;
    drop(stderr);
    // Input typed before the prompt is not a reply to the prompt.
    #[cfg(unix)]
    rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush)?;
    let mut stdin = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        let mut chunk = Vec::new();
        (&mut stdin).take(MAX_ANSWER_BYTES).read_until(b'\n', &mut chunk)?;
        let ended = chunk.is_empty() || chunk.ends_with(b"\n");
        line.append(&mut chunk);
        if ended {
            break;
        }
        // A longer line is not a reply. Its rest is read here so that the next prompt does not get
        // it.
        line.truncate(MAX_ANSWER_BYTES as usize);
        line.push(b'?');
    }
    let line = String::from_utf8_lossy(&line);
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
