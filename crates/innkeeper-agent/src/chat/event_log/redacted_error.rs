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
        ToolError::Runner { .. }
        | ToolError::BufferFull { .. }
        | ToolError::Recorded { .. }
        | ToolError::Panicked { .. } => error.to_string(),
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

#[cfg(test)]
mod tests {
    use innkeeper_toolcall::Violation;

    use super::*;

    #[test]
    fn a_description_names_the_kind_of_the_error_and_no_text_of_a_model_or_a_server() {
        let secret = || "SECRET".to_owned();
        let violation = || Violation { pointer: secret(), message: secret() };
        let unavailable = CallError::Unavailable {
            server: "files".into(),
            reason: UnavailableReason::NotStarted(secret().into()),
            may_have_run: false,
            attempts: 1,
        };
        let validation =
            CallError::Validation { item: "files.read".into(), problems: vec![violation()] };
        let violations = vec![violation(), violation()];
        for (error, expected) in [
            (unavailable.into(), "server `files` is unavailable (not_started)"),
            (validation.into(), "invalid arguments (problems: 1)"),
            (
                ToolError::InvalidArguments { tool: secret(), violations },
                "invalid arguments (problems: 2)",
            ),
            (ToolError::Refused { tool: secret(), reason: secret() }, "refused"),
        ] {
            assert_eq!(describe(&error), expected);
        }
    }
}
