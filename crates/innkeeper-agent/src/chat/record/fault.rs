//! Why a tool has no answer, for a log in which neither models nor tools have a say.

use innkeeper_host::CallError;
use innkeeper_host::error::Lost;

use crate::tools::RunError;

/// In words of our own: what the model wrote and what the server said stays out.
pub(super) fn words(error: &RunError) -> String {
    match error {
        RunError::Host(error) => of_call(error),
        RunError::Unfit { violations, .. } => unfit(violations.len()),
        RunError::Number { .. } => "a number of the arguments does not fit into 64 bits".to_owned(),
        RunError::Runner { .. } | RunError::Untaken { .. } | RunError::Panicked { .. } => {
            error.to_string()
        }
    }
}

fn of_call(error: &CallError) -> String {
    match error {
        CallError::Validation { problems, .. } => unfit(problems.len()),
        CallError::Server { server, error, .. } => {
            format!("server `{server}` refused it (code {})", error.code)
        }
        CallError::Unavailable { server, reason, .. } => lost(server, reason),
        CallError::Withheld { server, findings, .. } => {
            format!("the answer of server `{server}` is withheld (findings: {})", findings.len())
        }
        CallError::Routing(_) => "its name leads to no tool, or to several".to_owned(),
        CallError::Timeout { .. } | CallError::Protocol { .. } => error.to_string(),
    }
}

/// By its word: what is behind it may be words of the server.
fn lost(server: &str, reason: &Lost) -> String {
    format!("server `{server}` is unavailable ({})", reason.as_str())
}

fn unfit(problems: usize) -> String {
    format!("the arguments do not fit (problems: {problems})")
}
