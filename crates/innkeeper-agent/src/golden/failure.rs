//! Failures of requests and calls as classes with a message, and back.

use innkeeper_golden::Outcome;

use crate::tools::{ToolError, ToolOutput};
use crate::transport::{HttpError, HttpErrorSource};

/// Returns the class and the message of a failed request.
pub(super) fn http_failure(error: &HttpError) -> (String, String) {
    let (kind, source) = match error {
        HttpError::ClientSetup { source } => ("client_setup", source),
        HttpError::InvalidRequest { source } => ("invalid_request", source),
        HttpError::Connect { source } => ("connect", source),
        HttpError::ConnectTimedOut { source } => ("connect_timed_out", source),
        HttpError::TimedOut { source } => ("timed_out", source),
        HttpError::Disconnected { source } => ("disconnected", source),
        HttpError::TooLarge { max_bytes } => {
            return ("too_large".to_owned(), max_bytes.to_string());
        }
    };
    (kind.to_owned(), chain(source))
}

/// Returns the failure of a class; an unknown class is a lost connection.
pub(super) fn http_error(kind: &str, message: &str) -> HttpError {
    let source = HttpErrorSource::from(message);
    match kind {
        "client_setup" => HttpError::ClientSetup { source },
        "invalid_request" => HttpError::InvalidRequest { source },
        "connect" => HttpError::Connect { source },
        "connect_timed_out" => HttpError::ConnectTimedOut { source },
        "timed_out" => HttpError::TimedOut { source },
        "too_large" => HttpError::TooLarge { max_bytes: message.parse().unwrap_or_default() },
        _ => HttpError::Disconnected { source },
    }
}

/// Returns the message of an error with those of its causes, as a result shows them.
fn chain(source: &HttpErrorSource) -> String {
    let mut message = source.to_string();
    let mut cause = source.source();
    while let Some(error) = cause {
        message.push_str(&format!(": {error}"));
        cause = error.source();
    }
    message
}

/// Returns what came back for a call.
pub(super) fn outcome_of(result: &Result<ToolOutput, ToolError>) -> Outcome {
    match result {
        Ok(output) if output.is_error() => Outcome::ToolError(output.raw().to_owned()),
        Ok(output) => Outcome::Result(output.raw().to_owned()),
        Err(ToolError::Refused { reason, .. }) => Outcome::Failed {
            class: "refused".to_owned(),
            message: reason.clone(),
            may_have_run: false,
        },
        Err(error) => Outcome::Failed {
            class: error.class().to_owned(),
            message: error.to_string(),
            may_have_run: error.may_have_run(),
        },
    }
}

/// Returns the result that a run gets for a recorded outcome; `None` if the run gave up.
pub(super) fn result_of(tool: &str, outcome: &Outcome) -> Option<Result<ToolOutput, ToolError>> {
    Some(match outcome {
        Outcome::Result(raw) => Ok(ToolOutput::new(raw.clone(), false)),
        Outcome::ToolError(raw) => Ok(ToolOutput::new(raw.clone(), true)),
        Outcome::Failed { class, message, .. } if class == "refused" => {
            Err(ToolError::Refused { tool: tool.to_owned(), reason: message.clone() })
        }
        Outcome::Failed { class, message, may_have_run } => Err(ToolError::Recorded {
            class: class.clone(),
            message: message.clone(),
            may_have_run: *may_have_run,
        }),
        // Only recordings of other programs' agents have JSON-RPC errors.
        Outcome::Error(error) => Err(ToolError::Recorded {
            class: "error".to_owned(),
            message: error.get().to_owned(),
            may_have_run: true,
        }),
        Outcome::Abandoned {} => return None,
    })
}
