//! Error descriptions for the log, without text of models or tools.

use innkeeper_host::CallError;
use innkeeper_host::error::UnavailableReason;

use crate::tools::ToolError;

/// Describes the error without text from the model or the server.
pub(super) fn describe(error: &ToolError) -> String {
    match error {
        ToolError::Host(error) => describe_call_error(error),
        ToolError::InvalidArguments { violations, .. } => {
            describe_invalid_arguments(violations.len())
        }
        // The reason may be text of the user.
        ToolError::Refused { .. } => "refused".to_owned(),
        ToolError::Runner { .. } | ToolError::BufferFull { .. } | ToolError::Panicked { .. } => {
            error.to_string()
        }
    }
}

fn describe_call_error(error: &CallError) -> String {
    match error {
        CallError::Validation { problems, .. } => describe_invalid_arguments(problems.len()),
        CallError::Server { server, error, .. } => {
            format!("server `{server}` rejected the call (code {})", error.code)
        }
        CallError::Unavailable { server, reason, .. } => describe_unavailable(server, reason),
        CallError::Withheld { server, findings, .. } => {
            format!("the result of server `{server}` is withheld (findings: {})", findings.len())
        }
        CallError::Routing(_) => "the name matches no tool or several tools".to_owned(),
        CallError::Timeout { .. } | CallError::Protocol { .. } => error.to_string(),
    }
}

/// Uses the reason's code only: its source may contain text of the server.
fn describe_unavailable(server: &str, reason: &UnavailableReason) -> String {
    format!("server `{server}` is unavailable ({})", reason.as_str())
}

fn describe_invalid_arguments(problems: usize) -> String {
    format!("invalid arguments (problems: {problems})")
}
