//! Counts of task outcomes, per API and mode.

use std::collections::BTreeMap;
use std::io::Write;

use innkeeper_agent::agent::RunResult;
use innkeeper_agent::provider::ProviderApi;
use innkeeper_agent::run::{CallOrigin, ToolCalling};
use serde_json::{Value, json};

use super::TaskCase;

/// Maximum number of characters of a response in the output.
const MAX_SHOWN_CHARS: usize = 120;

/// The counts of one API and mode. Only the first call of each question that reached a tool counts.
#[derive(Debug)]
pub(super) struct TaskMetrics {
    api: ProviderApi,
    tool_calling: ToolCalling,
    questions: u32,
    /// Calls of a known tool with valid arguments.
    pub(super) valid: u32,
    /// Valid calls in the first response of the model.
    first_try: u32,
    /// Valid calls of the expected tool with the expected arguments.
    correct: u32,
    /// Questions with a call and a last response in text.
    pub(super) answered: u32,
    /// Answered questions whose response contains the fact that the tool returned.
    grounded: u32,
    /// The first calls, by origin.
    calls_by_origin: BTreeMap<CallOrigin, u32>,
    seconds: f64,
}

impl TaskMetrics {
    pub(super) fn new(api: ProviderApi, tool_calling: ToolCalling) -> Self {
        Self {
            api,
            tool_calling,
            questions: 0,
            valid: 0,
            first_try: 0,
            correct: 0,
            answered: 0,
            grounded: 0,
            calls_by_origin: BTreeMap::new(),
            seconds: 0.0,
        }
    }

    pub(super) fn count(&mut self, case: &TaskCase, report: &RunResult) {
        self.questions += 1;
        self.seconds += report.elapsed.as_secs_f64();
        let ended = format!("{:?}", report.outcome);
        let text: String = report.text.chars().take(MAX_SHOWN_CHARS).collect();
        let Some(record) = report.tool_calls.iter().find(|call| !call.outcome.rejected) else {
            eprintln!("- {:?} {:?}: no call, {ended}: {text}", self.api, case.question);
            return;
        };
        let arguments = serde_json::from_str(&record.arguments.to_string()).unwrap();
        let valid = case.is_valid(&record.tool, &arguments);
        let correct = valid && case.is_correct(&record.tool, &arguments);
        let answered = report.is_success() && !report.text.is_empty();
        let grounded = answered && case.contains_fact(&report.text);
        eprintln!(
            "{} {:?} {:?}: {} {arguments}, {}, {ended}: {text}",
            if correct { "+" } else { "-" },
            self.api,
            case.question,
            record.tool,
            record.origin.name(),
        );
        self.valid += u32::from(valid);
        self.first_try += u32::from(valid && record.attempts.failed_attempts == 0);
        self.correct += u32::from(correct);
        self.answered += u32::from(answered);
        self.grounded += u32::from(grounded);
        *self.calls_by_origin.entry(record.origin).or_default() += 1;
    }

    /// Returns the number of first calls in constrained output.
    pub(super) fn constrained(&self) -> u32 {
        self.calls_by_origin.get(&CallOrigin::Constrained).copied().unwrap_or_default()
    }

    /// Writes the counts for `cargo xtask eval-local-model`.
    pub(super) fn write(&self) {
        let mode = match self.tool_calling {
            ToolCalling::Auto => "auto",
            ToolCalling::Native => "native",
            ToolCalling::Prompt => "prompted",
            ToolCalling::Constrained => "constrained",
        };
        let origin =
            self.calls_by_origin.iter().map(|(origin, count)| format!("{} {count}", origin.name()));
        let origins: Vec<_> = origin.collect();
        write_line(&json!({
            "wire": api_name(self.api), "way": mode, "asked": self.questions, "valid": self.valid,
            "at once": self.first_try, "correct": self.correct, "answered": self.answered,
            "told": self.grounded, "made": origins.join(", "),
            "seconds": self.seconds / f64::from(self.questions.max(1)),
        }));
    }
}

/// Writes that an API was skipped.
pub(super) fn write_skipped(api: ProviderApi, reason: &str) {
    write_line(&json!({"wire": api_name(api), "skipped": reason}));
}

fn api_name(api: ProviderApi) -> &'static str {
    match api {
        ProviderApi::OpenAiChat => "OpenAI Chat Completions",
        ProviderApi::OpenAiResponses => "OpenAI Responses",
        ProviderApi::Anthropic => "Anthropic Messages",
        ProviderApi::GeminiGenerate => "Gemini generateContent",
        ProviderApi::GeminiInteractions => "Gemini Interactions",
        ProviderApi::Ollama => "Ollama",
    }
}

fn write_line(figures: &Value) {
    eprintln!("{figures}");
    let Some(file) = std::env::var_os("INNKEEPER_FIGURES") else { return };
    let mut file = std::fs::File::options().create(true).append(true).open(file).unwrap();
    writeln!(file, "{figures}").unwrap();
}
