//! What the chat says of a call besides its tool, its arguments and its result.

use innkeeper_agent::agent::ToolCallRecord;
use innkeeper_agent::run::CallOrigin;
use innkeeper_host::Progress;

/// Returns how a call was made and what is unknown of its end, with a comma before each fact. A native
/// call has no fact.
pub(crate) fn facts(record: &ToolCallRecord) -> String {
    let mut facts = String::new();
    match record.origin {
        CallOrigin::Native => {}
        CallOrigin::Recovered
        | CallOrigin::Repaired
        | CallOrigin::Corrected
        | CallOrigin::Constrained => facts.push_str(&format!(", {}", record.origin.name())),
    }
    if record.outcome.outcome_unknown {
        facts.push_str(", unknown whether the tool ran");
    }
    if record.outcome.cached {
        facts.push_str(", cached");
    }
    facts
}

/// Returns the progress of a call: value, total and message.
pub(crate) fn progress(progress: &Progress) -> String {
    let mut text = progress.progress.to_string();
    if let Some(total) = progress.total {
        text.push_str(&format!("/{total}"));
    }
    if let Some(message) = &progress.message {
        text.push_str(&format!(" {message}"));
    }
    text
}
