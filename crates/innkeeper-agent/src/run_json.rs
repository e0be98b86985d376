//! The result of a run as JSON, as `ask --json` prints it.

mod history;
mod summary;
mod tool_times;

use std::borrow::Cow;
use std::collections::BTreeMap;

use innkeeper_toolcall::Json;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::agent::{RunResult, ToolCallRecord};
use crate::conversation::Conversation;
use crate::provider::{Cost, Usage};
use crate::run::{ErrorRecord, RecoveryAction, RunOutcome, ToolCallMode};
use history::history_json;
use summary::summary;
use tool_times::tool_times;

pub use history::{MessageJson, MessageToolCallJson};
pub use tool_times::ToolTimes;

/// The JSON Schema (2020-12) of [`RunJson`].
pub const RESULT_SCHEMA: &str = include_str!("run_json/result.schema.json");

/// The result of a run.
#[derive(Debug, Serialize)]
pub struct RunJson<'r> {
    /// Whether the model gave its last response, and at least one tool call, if any, succeeded.
    pub success: bool,
    /// The model's last text; `null` if the model gave none.
    pub final_result: Option<&'r str>,
    /// What was done, in one or two sentences: the numbers of responses and calls, and the tools.
    pub summary: String,
    /// The reason for a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The tool calls, in the order in which the model made them.
    pub tool_chain: Vec<ToolCallJson<'r>>,
    /// The messages of the conversation, oldest first, behind the system prompt.
    pub conversation_history: Vec<MessageJson<'r>>,
    /// The servers that are not available, the failed and refused calls, the detected loops, and
    /// the reason for a failure of the run.
    pub errors: Vec<ErrorJson<'r>>,
    /// The counts and durations of the run.
    pub execution_metadata: ExecutionMetadata<'r>,
}

/// What a result says beyond the run itself.
#[derive(Clone, Copy, Debug)]
pub struct RunContext<'r> {
    /// The name of the provider.
    pub provider: &'r str,
    /// The name of the model.
    pub model: &'r str,
    /// The system prompt.
    pub system: &'r str,
    /// The conversation after the run.
    pub conversation: &'r Conversation,
    /// The number of available tools.
    pub tools_discovered: usize,
    /// The number of ready servers.
    pub servers_connected: usize,
}

/// A tool call.
#[derive(Debug, Serialize)]
pub struct ToolCallJson<'r> {
    /// The iteration of the run, counted from 1.
    pub iteration: u32,
    /// The public name of the tool.
    pub tool_name: &'r str,
    /// The arguments; an empty object if a rejected call has none that can be read.
    pub arguments: &'r Json,
    /// The outcome of the call.
    #[serde(flatten)]
    pub outcome: CallOutcomeJson<'r>,
    /// How the call came about.
    #[serde(flatten)]
    pub cause: CallCauseJson<'r>,
    /// The id of the call in the conversation; `null` for a call in a text that was corrected.
    pub tool_call_id: Option<&'r str>,
    /// The ids of the earlier calls of the run whose results the model saw when it made the call, in
    /// their order. Of earlier results, the model saw a summary at most.
    pub visible_results: &'r [String],
}

/// The outcome of a tool call.
#[derive(Debug, Serialize)]
pub struct CallOutcomeJson<'r> {
    /// Whether the tool returned a result without an error.
    pub success: bool,
    /// The result object of the tool.
    pub result: Option<&'r RawValue>,
    /// The error.
    pub error: Option<&'r str>,
    /// The duration in seconds.
    pub execution_time: f64,
}

/// How a tool call came about.
#[derive(Debug, Serialize)]
pub struct CallCauseJson<'r> {
    /// What the model wrote before the call in the same response; empty if the model wrote nothing.
    pub reasoning: &'r str,
    /// 0 for a call that works on no failed goal, otherwise one more than the attempt before.
    pub retry_attempt: u32,
    /// The number of malformed or rejected attempts at the call, which were not run.
    pub failed_attempts: u32,
    /// Whether the result comes from the cache.
    pub cached: bool,
    /// The origin of the call: `native`, `recovered`, `repaired`, `corrected` or `constrained`.
    pub mechanism: &'static str,
}

/// A failed or refused call, or a detected loop.
#[derive(Debug, Serialize)]
pub struct ErrorJson<'r> {
    /// The iteration of the run, counted from 1; 0 before the first request.
    pub iteration: u32,
    /// The public name of the tool; `null` for an error of a server or of the run.
    pub tool_name: Option<&'r str>,
    /// The id of the call in the conversation.
    pub tool_call_id: Option<&'r str>,
    /// The error.
    pub error: Cow<'r, str>,
    /// What the model did in its next response; see [`RecoveryAction`].
    pub recovery_action: Option<&'static str>,
}

/// The counts and durations of a run.
#[derive(Debug, Serialize)]
pub struct ExecutionMetadata<'r> {
    /// The duration in seconds.
    pub total_execution_time: f64,
    /// The number of iterations.
    pub total_iterations: u32,
    /// What was available to the run.
    #[serde(flatten)]
    pub available: AvailableJson,
    /// The tool calls.
    #[serde(flatten)]
    pub calls: CallCountsJson,
    /// The token usage, as reported by the provider.
    #[serde(flatten)]
    pub usage: UsageJson,
    /// The durations of the calls of each tool, by public name.
    pub tool_times: BTreeMap<&'r str, ToolTimes>,
    /// The model.
    #[serde(flatten)]
    pub model: ModelJson<'r>,
    /// The requests to the model.
    #[serde(flatten)]
    pub requests: RequestsJson,
}

/// What was available to a run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AvailableJson {
    /// The number of available tools.
    pub tools_discovered: usize,
    /// The number of ready servers.
    pub servers_connected: usize,
}

/// Figures about the tool calls of a run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CallCountsJson {
    /// The number of calls with a `retry_attempt` above 0.
    pub backtrack_count: usize,
    /// The percentage of successful tool calls; without calls 100, or 0 if no response was received.
    pub success_rate: f64,
}

/// The token usage of a run, as reported by the provider.
#[derive(Debug, Serialize)]
pub struct UsageJson {
    /// The sum.
    pub token_usage: TokenUsage,
    /// The token usage of each iteration with a response.
    pub token_usage_by_iteration: Vec<TokenUsage>,
}

/// The model of a run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ModelJson<'r> {
    /// The name of the provider.
    pub provider: &'r str,
    /// The name of the model.
    pub model: &'r str,
    /// The tool call mode at the end of the run: `native` or `prompt`.
    pub tool_calling: Option<&'static str>,
}

/// The requests of a run to the model.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RequestsJson {
    /// The number of requests, including retries.
    pub requests: u32,
    /// The number of requests after invalid calls.
    pub corrections: u32,
    /// The number of requests after failures of the provider.
    pub repeated: u32,
    /// The number of summaries of the history that the model wrote.
    pub summaries: u32,
}

/// The token usage of one or more responses.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TokenUsage {
    /// The number of input tokens.
    pub prompt_tokens: u64,
    /// The number of output tokens.
    pub completion_tokens: u64,
    /// The sum of both.
    pub total_tokens: u64,
    /// Whether every response reported its usage. The sums exclude responses without a report.
    pub available: bool,
    /// The cost in the provider's unit; without a member if no response reported a cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl TokenUsage {
    pub(crate) fn new(usage: Usage, available: bool) -> Self {
        Self {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            total_tokens: usage.total_tokens(),
            available,
            cost: usage.cost,
        }
    }
}

impl<'r> RunJson<'r> {
    /// Creates the JSON form of a run's result.
    pub fn new(report: &'r RunResult, context: &RunContext<'r>) -> Self {
        let error = failure_message(&report.outcome)
            .or_else(|| report.all_calls_failed().then(|| "all tool calls failed".to_owned()));
        let run_error = error.clone().map(|error| run_error_json(report, error));
        let errors = report.errors.iter().map(error_json).chain(run_error).collect();
        Self {
            summary: summary(report),
            success: error.is_none(),
            final_result: (!report.text.is_empty()).then_some(&*report.text),
            error,
            tool_chain: report.tool_calls.iter().map(|record| tool_call_json(record)).collect(),
            conversation_history: history_json(context.system, context.conversation),
            errors,
            execution_metadata: ExecutionMetadata::new(report, context),
        }
    }
}

impl<'r> ExecutionMetadata<'r> {
    fn new(report: &'r RunResult, context: &RunContext<'r>) -> Self {
        let calls = &report.tool_calls;
        let stats = &report.stats;
        let reached_model = stats.responses > 0;
        let succeeded = calls.iter().filter(|record| record.outcome.success).count();
        let usages = stats.usage_by_iteration.iter();
        Self {
            total_execution_time: report.elapsed.as_secs_f64(),
            total_iterations: iterations(report),
            available: AvailableJson {
                tools_discovered: context.tools_discovered,
                servers_connected: context.servers_connected,
            },
            calls: CallCountsJson {
                backtrack_count: calls
                    .iter()
                    .filter(|call| call.attempts.retry_attempt > 0)
                    .count(),
                success_rate: match calls.len() {
                    0 if !reached_model => 0.0,
                    0 => 100.0,
                    all => succeeded as f64 * 100.0 / all as f64,
                },
            },
            usage: UsageJson {
                token_usage: TokenUsage::new(stats.usage, stats.usage_is_complete && reached_model),
                token_usage_by_iteration: usages
                    .map(|iteration| TokenUsage::new(iteration.usage, iteration.is_complete))
                    .collect(),
            },
            tool_times: tool_times(calls),
            model: ModelJson {
                provider: context.provider,
                model: context.model,
                tool_calling: report.tool_call_mode.map(|mode| match mode {
                    ToolCallMode::Native => "native",
                    ToolCallMode::Prompt => "prompt",
                }),
            },
            requests: RequestsJson {
                requests: stats.requests,
                corrections: stats.corrections,
                repeated: stats.request_retries,
                summaries: stats.summaries,
            },
        }
    }
}

/// Returns the number of iterations. An iteration has a response, so a run that never reached the
/// model has none.
fn iterations(report: &RunResult) -> u32 {
    if report.stats.responses == 0 { 0 } else { report.stats.iterations }
}

/// Returns the failure of the run itself as an error.
fn run_error_json(report: &RunResult, error: String) -> ErrorJson<'_> {
    ErrorJson {
        iteration: iterations(report),
        tool_name: None,
        tool_call_id: None,
        error: Cow::Owned(error),
        recovery_action: None,
    }
}

fn error_json(error: &ErrorRecord) -> ErrorJson<'_> {
    ErrorJson {
        iteration: error.iteration,
        tool_name: error.tool.as_deref(),
        tool_call_id: error.call_id.as_deref(),
        error: Cow::Borrowed(&error.error),
        recovery_action: error.recovery_action.map(RecoveryAction::name),
    }
}

fn tool_call_json(record: &ToolCallRecord) -> ToolCallJson<'_> {
    ToolCallJson {
        iteration: record.iteration,
        tool_name: &record.tool,
        arguments: &record.arguments,
        outcome: CallOutcomeJson {
            success: record.outcome.success,
            result: record.output.as_ref().map(|output| output.raw()),
            error: (!record.outcome.success).then_some(&*record.result_text),
            execution_time: record.elapsed.as_secs_f64(),
        },
        cause: CallCauseJson {
            reasoning: &record.reasoning,
            retry_attempt: record.attempts.retry_attempt,
            failed_attempts: record.attempts.failed_attempts,
            cached: record.outcome.cached,
            mechanism: record.origin.name(),
        },
        tool_call_id: Some(&*record.id).filter(|id| !id.is_empty()),
        visible_results: &record.visible_results,
    }
}

/// Returns the reason why the run has no last response.
pub(crate) fn failure_message(ended: &RunOutcome) -> Option<String> {
    match ended {
        RunOutcome::Completed => None,
        RunOutcome::Truncated => Some("the response was truncated at the token limit".to_owned()),
        RunOutcome::Refused => Some("the model refused to respond".to_owned()),
        RunOutcome::IterationLimit => {
            Some("iteration limit reached before the model's last response".to_owned())
        }
        RunOutcome::Interrupted => Some("the run was interrupted".to_owned()),
        RunOutcome::CallFailed => {
            Some("a tool call failed, and backtracking is disabled".to_owned())
        }
        RunOutcome::LoopDetected => {
            Some("the model repeated a call whose result did not change".to_owned())
        }
        RunOutcome::NoValidCall { attempts } => {
            let last = attempts.last().map(|attempt| attempt.problem.as_str()).unwrap_or_default();
            Some(format!("no valid response after {} attempts; last error: {last}", attempts.len()))
        }
        RunOutcome::Failed(error) => {
            let mut message = error.to_string();
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                message.push_str(&format!(": {cause}"));
                source = cause.source();
            }
            Some(message)
        }
        RunOutcome::NotSent { reason } => Some(format!("request not sent: {reason}")),
    }
}
