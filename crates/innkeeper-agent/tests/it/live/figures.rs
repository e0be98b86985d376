//! What came of the tasks over one wire in one way, counted.

use std::collections::BTreeMap;
use std::io::Write;

use innkeeper_agent::agent::Report;
use innkeeper_agent::provider::Wire;
use innkeeper_agent::turn::{Mechanism, ToolCalling};
use serde_json::{Value, json};

use super::Case;

/// How much of an answer is shown.
const SHOWN: usize = 120;

/// See the [module](self). Of each question, the first call that reached a tool counts.
#[derive(Debug)]
pub(super) struct Figures {
    wire: Wire,
    calling: ToolCalling,
    asked: u32,
    /// Calls of a known tool with arguments that fit.
    pub(super) valid: u32,
    /// Of these, in the first answer of the model.
    at_once: u32,
    /// Of these, of the right tool with the right arguments.
    correct: u32,
    /// Questions that a call and then an answer in words came of.
    pub(super) answered: u32,
    /// Of these, with what the tool found.
    told: u32,
    /// How the first calls were made.
    made: BTreeMap<Mechanism, u32>,
    seconds: f64,
}

impl Figures {
    pub(super) fn of(wire: Wire, calling: ToolCalling) -> Self {
        Self {
            wire,
            calling,
            asked: 0,
            valid: 0,
            at_once: 0,
            correct: 0,
            answered: 0,
            told: 0,
            made: BTreeMap::new(),
            seconds: 0.0,
        }
    }

    pub(super) fn count(&mut self, case: &Case, report: &Report) {
        self.asked += 1;
        self.seconds += report.elapsed.as_secs_f64();
        let ended = format!("{:?}", report.ended);
        let text: String = report.text.chars().take(SHOWN).collect();
        let Some(step) = report.steps.first() else {
            eprintln!("- {:?} {:?}: no call, {ended}: {text}", self.wire, case.asked);
            return;
        };
        let arguments = serde_json::from_str(&step.arguments.to_string()).unwrap();
        let valid = case.is_valid(&step.tool, &arguments);
        let correct = valid && case.is_correct(&step.tool, &arguments);
        let answered = report.is_success() && !report.text.is_empty();
        let told = answered && case.is_told(&report.text);
        eprintln!(
            "{} {:?} {:?}: {} {arguments}, {}, {ended}: {text}",
            if correct { "+" } else { "-" },
            self.wire,
            case.asked,
            step.tool,
            step.mechanism.name(),
        );
        self.valid += u32::from(valid);
        self.at_once += u32::from(valid && step.retries == 0);
        self.correct += u32::from(correct);
        self.answered += u32::from(answered);
        self.told += u32::from(told);
        *self.made.entry(step.mechanism).or_default() += 1;
    }

    /// First calls that the server held to the form of a call.
    pub(super) fn constrained(&self) -> u32 {
        self.made.get(&Mechanism::Constrained).copied().unwrap_or_default()
    }

    /// Hands them on to `cargo xtask models`.
    pub(super) fn keep(&self) {
        let way = match self.calling {
            ToolCalling::Auto => "auto",
            ToolCalling::Native => "native",
            ToolCalling::Prompt => "prompted",
            ToolCalling::Constrained => "constrained",
        };
        let made = self.made.iter().map(|(made, count)| format!("{} {count}", made.name()));
        let made: Vec<_> = made.collect();
        line(&json!({
            "wire": words(self.wire), "way": way, "asked": self.asked, "valid": self.valid,
            "at once": self.at_once, "correct": self.correct, "answered": self.answered,
            "told": self.told, "made": made.join(", "),
            "seconds": self.seconds / f64::from(self.asked.max(1)),
        }));
    }
}

/// The same of a wire over which nothing could be asked.
pub(super) fn keep_skipped(wire: Wire, reason: &str) {
    line(&json!({"wire": words(wire), "skipped": reason}));
}

fn words(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenAiChat => "OpenAI Chat Completions",
        Wire::OpenAiResponses => "OpenAI Responses",
        Wire::Anthropic => "Anthropic Messages",
        Wire::GeminiGenerate => "Gemini generateContent",
        Wire::GeminiInteractions => "Gemini Interactions",
        Wire::Ollama => "Ollama",
    }
}

fn line(figures: &Value) {
    eprintln!("{figures}");
    let Some(file) = std::env::var_os("INNKEEPER_FIGURES") else { return };
    let mut file = std::fs::File::options().create(true).append(true).open(file).unwrap();
    writeln!(file, "{figures}").unwrap();
}
