//! The recorded result of a run, as far as the commands read it.

use innkeeper_agent::golden::Golden;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::exit::CliError;

use super::files::GoldenFile;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RunView {
    pub(super) success: bool,
    pub(super) final_result: Option<String>,
    pub(super) error: Option<String>,
    pub(super) tool_chain: Vec<CallView>,
    pub(super) conversation_history: Vec<MessageView>,
    pub(super) errors: Vec<ErrorView>,
    pub(super) execution_metadata: MetadataView,
}

/// A call in the order of the model.
#[derive(Debug, Deserialize)]
pub(super) struct CallView {
    #[serde(default)]
    pub(super) iteration: u32,
    pub(super) tool_name: String,
    pub(super) arguments: Box<RawValue>,
    #[serde(default)]
    pub(super) success: bool,
    #[serde(default)]
    pub(super) result: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) error: Option<String>,
    /// In seconds.
    #[serde(default)]
    pub(super) execution_time: f64,
    #[serde(default)]
    pub(super) reasoning: String,
    #[serde(flatten)]
    pub(super) attempts: AttemptsView,
    #[serde(default)]
    pub(super) mechanism: String,
    #[serde(default)]
    pub(super) tool_call_id: Option<String>,
}

/// How often a call was made.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct AttemptsView {
    pub(super) cached: bool,
    pub(super) retry_attempt: u32,
    pub(super) failed_attempts: u32,
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageView {
    pub(super) role: String,
    #[serde(default)]
    pub(super) content: String,
    #[serde(default)]
    pub(super) tool_calls: Option<Vec<MessageCallView>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageCallView {
    pub(super) id: String,
}

/// An error of a call, a server or the run.
#[derive(Debug, Deserialize)]
pub(super) struct ErrorView {
    #[serde(default)]
    pub(super) iteration: u32,
    #[serde(default)]
    pub(super) tool_name: Option<String>,
    #[serde(default)]
    pub(super) tool_call_id: Option<String>,
    pub(super) error: String,
    #[serde(default)]
    pub(super) recovery_action: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MetadataView {
    /// In seconds.
    pub(super) total_execution_time: f64,
    pub(super) total_iterations: u32,
    pub(super) token_usage: TokenView,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct TokenView {
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
    pub(super) total_tokens: u64,
}

impl RunView {
    /// Reads the result of a golden.
    ///
    /// # Errors
    ///
    /// `golden_output` is not the result of a run.
    pub(super) fn from_golden(golden: &Golden) -> Result<Self, serde_json::Error> {
        serde_json::from_str(golden.golden_output.get())
    }

    /// Reads the result of a file.
    ///
    /// # Errors
    ///
    /// `golden_output` is not the result of a run.
    pub(super) fn from_file(file: &GoldenFile) -> Result<Self, CliError> {
        Self::from_golden(&file.golden).map_err(|error| {
            let message = format!("`golden_output` of `{}` is no result of a run", file.name());
            CliError::usage(message)
                .with_source(error)
                .with_hint("restore the file from your version control, or record the run again")
        })
    }

    /// Returns why the run failed; `None` for a success.
    pub(super) fn failure(&self) -> Option<&str> {
        (!self.success).then(|| self.error.as_deref().unwrap_or("the run failed"))
    }

    /// Returns the number of calls without a result, or with a failure of the tool.
    pub(super) fn failed_calls(&self) -> usize {
        self.tool_chain.iter().filter(|call| !call.success).count()
    }

    /// Returns what was done after the failure of a call.
    pub(super) fn recovery_action(&self, call: &CallView) -> Option<&str> {
        let id = call.tool_call_id.as_deref()?;
        let error = self.errors.iter().find(|error| error.tool_call_id.as_deref() == Some(id));
        error?.recovery_action.as_deref()
    }

    /// Returns the text of the model in an iteration; empty if there is none.
    ///
    /// A message has no iteration: it has that of its calls, or follows the message before it. A
    /// summary of the history may have replaced early messages; the text before their calls stays.
    pub(super) fn model_text(&self, iteration: u32) -> &str {
        let mut next = 1;
        for message in self.conversation_history.iter().filter(|item| item.role == "assistant") {
            let calls = message.tool_calls.iter().flatten();
            let of_calls = calls.into_iter().find_map(|call| self.iteration_of(&call.id));
            let present = of_calls.unwrap_or(next);
            if present == iteration && !message.content.is_empty() {
                return &message.content;
            }
            next = present + 1;
        }
        let calls = self.tool_chain.iter().filter(|call| call.iteration == iteration);
        calls.map(|call| call.reasoning.as_str()).find(|text| !text.is_empty()).unwrap_or_default()
    }

    fn iteration_of(&self, call_id: &str) -> Option<u32> {
        let call =
            self.tool_chain.iter().find(|call| call.tool_call_id.as_deref() == Some(call_id));
        call.map(|call| call.iteration)
    }
}

/// Returns seconds as whole milliseconds.
pub(super) fn millis(seconds: f64) -> u64 {
    // A file may have any number; the cast saturates.
    (seconds * 1000.0).round() as u64
}

/// Returns milliseconds as people read them: `80 ms`, `1.25 s`.
pub(super) fn duration_text(ms: u64) -> String {
    if ms < 1000 { format!("{ms} ms") } else { format!("{:.2} s", ms as f64 / 1000.0) }
}

#[cfg(test)]
mod tests {
    use super::super::samples::sample;
    use super::*;

    #[test]
    fn the_text_of_a_model_belongs_to_the_iteration_of_its_calls() {
        let run = RunView::from_golden(&sample()).unwrap();
        assert_eq!(run.model_text(1), "I look.");
        assert_eq!(run.model_text(2), "");
        assert_eq!(run.model_text(3), "Only one is there.");
        assert_eq!(run.model_text(4), "");
    }

    #[test]
    fn an_output_that_is_no_result_names_the_file() {
        let mut golden = sample();
        golden.golden_output = serde_json::value::to_raw_value("text").unwrap();
        let text = golden.to_json().unwrap();
        let file = GoldenFile { path: "a/b.json".into(), text, golden };
        let error = RunView::from_file(&file).unwrap_err().to_line();
        assert!(error.contains("`golden_output` of `a/b.json` is no result"), "{error}");
    }

    #[test]
    fn durations_read_well() {
        assert_eq!(millis(0.0804), 80);
        assert_eq!(millis(f64::NAN), 0);
        assert_eq!(duration_text(999), "999 ms");
        assert_eq!(duration_text(61_249), "61.25 s");
    }
}
