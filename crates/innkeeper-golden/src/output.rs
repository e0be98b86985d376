//! The members of `golden_output` that the comparison reads.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The result of a run, as `ask --json` prints it.
#[derive(Debug, Deserialize)]
pub(crate) struct RunOutput<'r> {
    pub(crate) success: bool,
    pub(crate) final_result: Option<String>,
    #[serde(default)]
    pub(crate) error: Option<String>,
    #[serde(borrow)]
    pub(crate) tool_chain: Vec<CallOutput<'r>>,
    pub(crate) errors: Vec<ErrorOutput>,
    pub(crate) execution_metadata: MetadataOutput,
}

/// A tool call.
#[derive(Debug, Deserialize)]
pub(crate) struct CallOutput<'r> {
    /// Calls with the same number were made in one response.
    pub(crate) iteration: u64,
    pub(crate) tool_name: String,
    #[serde(borrow)]
    pub(crate) arguments: &'r RawValue,
}

/// A failed or refused call, or another error of the run.
#[derive(Debug, Deserialize)]
pub(crate) struct ErrorOutput {
    pub(crate) tool_name: Option<String>,
    pub(crate) error: String,
    pub(crate) recovery_action: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct MetadataOutput {
    pub(crate) total_execution_time: f64,
    pub(crate) total_iterations: u64,
    pub(crate) token_usage: UsageOutput,
}

#[derive(Debug, Deserialize)]
pub(crate) struct UsageOutput {
    pub(crate) total_tokens: u64,
    pub(crate) available: bool,
}
