//! Asks the user on the terminal to approve each call.

use innkeeper_agent::safety::{ApprovalDecision, ApprovalRequest, Approver};

use crate::cli::ApprovalArg;
use crate::exit::CliError;
use crate::output::escape_inline;
use crate::terminal_questions::{QuestionSource as _, TerminalQuestions, is_yes};

/// Returns the terminal for `--approve ask`; `None` if the user is asked nothing.
pub(crate) fn terminal_for(approve: ApprovalArg) -> Result<Option<TerminalQuestions>, CliError> {
    match approve {
        ApprovalArg::All | ApprovalArg::Never => Ok(None),
        ApprovalArg::Ask => TerminalQuestions::open()
            .ok_or_else(|| {
                CliError::usage("`--approve ask` needs a terminal").with_hint(
                    "use `--approve all` to run every call, `--approve never` to run no calls",
                )
            })
            .map(Some),
    }
}

/// Asks for the approval of each call.
pub(crate) struct TerminalApprover(pub(crate) TerminalQuestions);

#[async_trait::async_trait]
impl Approver for TerminalApprover {
    async fn decide(&self, call: ApprovalRequest<'_>) -> ApprovalDecision {
        let question =
            format!("Run `{}` {}? [y/N] ", escape_inline(call.tool), escape_inline(call.arguments));
        match self.0.prompt(&question).await {
            Ok(Some(reply)) if is_yes(&reply) => ApprovalDecision::Approve,
            Ok(_) => ApprovalDecision::Deny("the user denied the call".to_owned()),
            Err(_) => ApprovalDecision::Deny("the approval prompt failed".to_owned()),
        }
    }
}
