//! What came of a message as one JSON object, as `ask --json` prints it.

use innkeeper_toolcall::Json;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::agent::{Report, Step};
use crate::provider::LlmProvider;
use crate::turn::{Ended, Way};

/// The whole result.
#[derive(Debug, Serialize)]
pub struct Outcome<'r> {
    /// Whether the model gave its last answer, and not every call failed.
    pub success: bool,
    /// The model's last text; `null` where it gave none.
    pub final_result: Option<&'r str>,
    /// Why there is no success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The calls, in the order in which they came to their end.
    pub tool_chain: Vec<Link<'r>>,
    /// What it took.
    pub execution_metadata: Metadata<'r>,
}

/// One call.
#[derive(Debug, Serialize)]
pub struct Link<'r> {
    /// In which round, counted from 1.
    pub iteration: u32,
    /// The tool, by its public name.
    pub tool_name: &'r str,
    /// The arguments.
    pub arguments: &'r Json,
    /// Whether the tool did what it was asked to.
    pub success: bool,
    /// What it answered: its result object.
    pub result: Option<&'r RawValue>,
    /// What was wrong.
    pub error: Option<&'r str>,
    /// How long it ran, in seconds.
    pub execution_time: f64,
    /// What the model thought or said before it.
    pub reasoning: &'r str,
    /// How many attempts before it were none.
    pub retry_attempt: u32,
    /// How it was made: `native`, `recovered`, `repaired`, `corrected` or `constrained`.
    pub mechanism: &'static str,
    /// Its id in the conversation.
    pub tool_call_id: &'r str,
}

/// What a run took.
#[derive(Debug, Serialize)]
pub struct Metadata<'r> {
    /// In seconds.
    pub total_execution_time: f64,
    /// Rounds of the model.
    pub total_iterations: u32,
    /// How many tools it could call.
    pub tools_discovered: usize,
    /// Of the calls, how many of a hundred did what they were asked to; 100 without calls.
    pub success_rate: f64,
    /// Tokens, as the provider counted them.
    pub token_usage: TokenUsage,
    /// Who was asked.
    pub provider: &'r str,
    /// Which model.
    pub model: &'r str,
    /// How tools were called at the end: `native` or `prompt`.
    pub tool_calling: Option<&'static str>,
    /// All requests, repeated ones included.
    pub requests: u32,
    /// Of these, those because a call was none.
    pub corrections: u32,
    /// Of these, those because the provider failed.
    pub repeated: u32,
}

/// Tokens of all answers together.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TokenUsage {
    /// Read.
    pub prompt_tokens: u64,
    /// Written.
    pub completion_tokens: u64,
    /// Together.
    pub total_tokens: u64,
    /// Whether every answer said what it cost; what did not is not in the sums.
    pub available: bool,
}

impl<'r> Outcome<'r> {
    /// The result of a report.
    pub fn new(report: &'r Report, provider: &'r dyn LlmProvider, tools: usize) -> Self {
        let good = report.steps.iter().filter(|step| step.success).count();
        let all_failed = !report.steps.is_empty() && good == 0;
        let success_rate = match report.steps.len() {
            0 => 100.0,
            all => good as f64 * 100.0 / all as f64,
        };
        let usage = report.tally.usage;
        let error = why(&report.ended)
            .or_else(|| all_failed.then(|| "every call of a tool failed".to_owned()));
        Self {
            success: error.is_none(),
            final_result: (!report.text.is_empty()).then_some(&*report.text),
            error,
            tool_chain: report.steps.iter().map(link).collect(),
            execution_metadata: Metadata {
                total_execution_time: report.elapsed.as_secs_f64(),
                total_iterations: report.tally.iterations,
                tools_discovered: tools,
                success_rate,
                token_usage: TokenUsage {
                    prompt_tokens: usage.prompt_tokens,
                    completion_tokens: usage.completion_tokens,
                    total_tokens: usage.total_tokens(),
                    available: report.tally.usage_is_whole && report.tally.answers > 0,
                },
                provider: provider.name(),
                model: provider.model(),
                tool_calling: report.way.map(|way| match way {
                    Way::Native => "native",
                    Way::Prompt => "prompt",
                }),
                requests: report.tally.requests,
                corrections: report.tally.corrections,
                repeated: report.tally.repeated,
            },
        }
    }
}

fn link(step: &Step) -> Link<'_> {
    Link {
        iteration: step.iteration,
        tool_name: &step.tool,
        arguments: &step.arguments,
        success: step.success,
        result: step.output.as_ref().map(|output| output.raw()),
        error: (!step.success).then_some(&*step.told),
        execution_time: step.elapsed.as_secs_f64(),
        reasoning: &step.reasoning,
        retry_attempt: step.retries,
        mechanism: step.mechanism.name(),
        tool_call_id: &step.id,
    }
}

/// Why there is no last answer.
fn why(ended: &Ended) -> Option<String> {
    match ended {
        Ended::Answered => None,
        Ended::Cut => Some("the answer was cut at its greatest length".to_owned()),
        Ended::Refused => Some("the model declined to answer".to_owned()),
        Ended::OutOfRounds => {
            Some("the model still called tools when no more rounds were left".to_owned())
        }
        Ended::NoCall { attempts } => {
            let last = attempts.last().map(|it| it.problem.as_str()).unwrap_or_default();
            Some(format!("no valid call after {} attempts; the last: {last}", attempts.len()))
        }
        Ended::Failed(error) => {
            let mut told = error.to_string();
            let mut source = std::error::Error::source(error);
            while let Some(behind) = source {
                told.push_str(&format!(": {behind}"));
                source = behind.source();
            }
            Some(told)
        }
        Ended::Unasked { reason } => Some(format!("the model cannot be asked: {reason}")),
    }
}
