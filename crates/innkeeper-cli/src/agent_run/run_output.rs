//! The result of an agent's run, in the form of an own run's, so that the same rules judge both.

use innkeeper_agent::golden::{Outcome, ToolCallRecord};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::agent_process::AgentEnd;

#[derive(Serialize)]
struct RunOutput<'r> {
    success: bool,
    final_result: &'r str,
    error: Option<String>,
    exit_code: Option<i32>,
    tool_chain: Vec<CallOutput<'r>>,
    conversation_history: [(); 0],
    errors: Vec<ErrorOutput<'r>>,
    execution_metadata: MetadataOutput,
}

#[derive(Serialize)]
struct CallOutput<'r> {
    iteration: usize,
    tool_name: &'r str,
    arguments: &'r RawValue,
    success: bool,
    result: Option<&'r RawValue>,
    error: Option<String>,
    /// In seconds.
    execution_time: f64,
}

#[derive(Serialize)]
struct ErrorOutput<'r> {
    iteration: usize,
    tool_name: &'r str,
    error: String,
    recovery_action: Option<String>,
}

#[derive(Serialize)]
struct MetadataOutput {
    /// In seconds.
    total_execution_time: f64,
    total_iterations: usize,
    token_usage: TokenUsage,
}

/// What the agent used is in the bytes of its model, in a form of each provider.
#[derive(Default, Serialize)]
struct TokenUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    available: bool,
}

/// Returns the member `golden_output` of a run: the agent's output, its exit code and its calls.
pub(super) fn run_output<'r>(
    end: &'r AgentEnd,
    requests: usize,
    calls: impl Iterator<Item = &'r ToolCallRecord>,
) -> Box<RawValue> {
    let tool_chain: Vec<_> = calls.map(call_output).collect();
    let errors = tool_chain.iter().filter_map(|call| {
        let error = call.error.clone()?;
        let CallOutput { iteration, tool_name, .. } = *call;
        Some(ErrorOutput { iteration, tool_name, error, recovery_action: None })
    });
    let output = RunOutput {
        success: end.exit_code == Some(0),
        final_result: &end.stdout,
        error: end.failure(),
        exit_code: end.exit_code,
        errors: errors.collect(),
        tool_chain,
        conversation_history: [],
        execution_metadata: MetadataOutput {
            total_execution_time: end.duration.as_secs_f64(),
            total_iterations: requests,
            token_usage: TokenUsage::default(),
        },
    };
    to_raw_value(&output).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn call_output(call: &ToolCallRecord) -> CallOutput<'_> {
    let result = match &call.outcome {
        Outcome::Result(result) | Outcome::ToolError(result) => Some(&**result),
        Outcome::Failed { .. } | Outcome::Error(_) | Outcome::Abandoned {} => None,
    };
    let error = match &call.outcome {
        Outcome::Failed { message, .. } => Some(message.clone()),
        Outcome::Error(error) => Some(error.get().to_owned()),
        other => other.failure_class().map(str::to_owned),
    };
    let duration = call.end_ms.map_or(0, |end| end.saturating_sub(call.begin_ms));
    CallOutput {
        iteration: call.round,
        tool_name: &call.name,
        arguments: &call.arguments,
        success: error.is_none(),
        result,
        error,
        execution_time: std::time::Duration::from_millis(duration).as_secs_f64(),
    }
}
