//! What an interaction answers, gathered from its steps.

mod events;

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::step::{Kind, Step};
use crate::conversation::Answer;
use crate::provider::codec::{Fault, Fields, PARTS};
use crate::provider::gemini::fault_of;
use crate::provider::{Class, Finish, Piece, Response, Usage};

/// What has come so far.
pub(super) struct Gathered {
    /// The model that was asked.
    model: String,
    steps: Vec<Step>,
    /// The last step that started with each index.
    indexed: HashMap<u64, usize>,
    calls: usize,
    /// The step of the last call.
    last_call: Option<usize>,
    status: Option<String>,
    /// The interaction was told to be over.
    completed: bool,
    usage: Option<Usage>,
    /// The model that answers.
    version: Option<String>,
}

impl Gathered {
    pub(super) fn new(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            steps: Vec::new(),
            indexed: HashMap::new(),
            calls: 0,
            last_call: None,
            status: None,
            completed: false,
            usage: None,
            version: None,
        }
    }

    /// Reads an answer that came whole.
    pub(super) fn whole(mut self, body: &[u8]) -> Result<Response, Fault> {
        let body = std::str::from_utf8(body);
        let body = body.map_err(|_| Fault::unreadable("the answer is not UTF-8"))?;
        let Some(interaction) = Fields::parse(body) else { return Err(no_interaction()) };
        if interaction.get("steps").is_none() && interaction.get("status").is_none() {
            return Err(self.failed(&interaction).unwrap_or_else(no_interaction));
        }
        self.interaction(&interaction, &mut Vec::new())?;
        self.completed = true;
        self.settle(&mut Vec::new());
        self.end()
    }

    /// Nothing more comes.
    pub(super) fn end(self) -> Result<Response, Fault> {
        // An end that only a status tells is one if no call waits for its own.
        let mut calls = self.steps.iter().filter(|step| matches!(step.kind, Kind::Call { .. }));
        let over = self.completed || self.is_over() && calls.all(|step| step.stopped);
        if !over {
            return Err(Fault::broken_off(self.written()));
        }
        let status = self.status.as_deref().unwrap_or_default();
        let finish = match status {
            "" | "completed" if self.calls == 0 => Finish::Stop,
            "" | "completed" | "requires_action" if self.calls > 0 => Finish::ToolCalls,
            "incomplete" | "requires_continuation" => Finish::Length,
            "failed" => {
                let fault = self.steps.iter().find_map(Step::failure);
                let fault = fault.unwrap_or_else(|| {
                    Fault::new(Class::Later { after: None }, "the interaction failed")
                });
                return Err(self.with_written(fault));
            }
            status => Finish::Other(status.to_owned()),
        };
        let Self { model, steps, usage, version, .. } = self;
        let parts = steps.into_iter().filter_map(|step| step.part(&model)).collect();
        Ok(Response { answer: Answer { parts }, finish, usage, model: version })
    }

    /// Takes what is told of the interaction around the steps.
    fn interaction(&mut self, told: &Fields<'_>, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        self.status = told.text("status").or(self.status.take());
        self.version = told.text("model").or(self.version.take());
        self.usage = told.get("usage").and_then(Fields::of).as_ref().map(usage).or(self.usage);
        if self.steps.is_empty() {
            for (index, step) in (0..).zip(told.parts("steps")?) {
                self.start(Some(index), step, pieces)?;
            }
        }
        if self.status.as_deref() == Some("failed")
            && let Some(fault) = self.failed(told)
        {
            return Err(fault);
        }
        Ok(())
    }

    /// A step begins; in an answer that comes whole it is all there.
    fn start(
        &mut self,
        index: Option<u64>,
        raw: &RawValue,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Fault> {
        let fields = Fields::of(raw).unwrap_or_default();
        let kind = match fields.text("type").as_deref() {
            // What was asked, and not what is answered.
            Some("user_input" | "function_result") => return Ok(()),
            Some("model_output") => Kind::Output,
            Some("thought") => Kind::Thought,
            Some("function_call") => {
                let call = (self.calls, fields.text("name").unwrap_or_default());
                self.calls += 1;
                Kind::Call { index: call.0, name: call.1 }
            }
            Some(_) | None => Kind::Other,
        };
        self.open(index, kind, raw, pieces)
    }

    fn open(
        &mut self,
        index: Option<u64>,
        kind: Kind,
        raw: &RawValue,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Fault> {
        if self.steps.len() == PARTS {
            return Err(Fault::too_many("parts"));
        }
        let step = Step::start(kind, raw)?;
        match &step.kind {
            Kind::Output if !step.said().is_empty() => {
                pieces.push(Piece::Text(step.said().to_owned()));
            }
            Kind::Thought if !step.said().is_empty() => {
                pieces.push(Piece::Reasoning(step.said().to_owned()));
            }
            Kind::Call { index, name } => {
                self.last_call = Some(self.steps.len());
                pieces.push(Piece::CallStart { index: *index, name: name.clone() });
            }
            Kind::Output | Kind::Thought | Kind::Other => {}
        }
        if let Some(index) = index {
            self.indexed.insert(index, self.steps.len());
        }
        self.steps.push(step);
        Ok(())
    }

    /// Whether the status is one that does not change any more.
    fn is_over(&self) -> bool {
        !matches!(self.status.as_deref(), None | Some("" | "in_progress" | "queued"))
    }

    /// At the end calls have all of their arguments: if none came behind its start, those in it.
    fn settle(&mut self, pieces: &mut Vec<Piece>) {
        if !self.completed && !self.is_over() {
            return;
        }
        for step in self.steps.iter_mut().filter(|step| self.completed || step.stopped) {
            let fragment = step.whole_arguments();
            if let (Kind::Call { index, .. }, Some(fragment)) = (&step.kind, fragment) {
                pieces.push(Piece::Arguments { index: *index, fragment });
            }
        }
    }

    /// The failure that an interaction or an event tells of.
    fn failed(&self, told: &Fields<'_>) -> Option<Fault> {
        let errors = told.list("errors").unwrap_or_default();
        let own = told.get("error").map(|_| fault_of(told, 500));
        let fault = own.or_else(|| {
            let first = errors.first().copied().and_then(Fields::of)?;
            Some(fault_of(&first, 500))
        })?;
        Some(self.with_written(fault))
    }

    fn with_written(&self, fault: Fault) -> Fault {
        let written = Some(self.written()).filter(|written| !written.is_empty());
        Fault { written, ..fault }
    }

    /// The text so far.
    fn written(&self) -> String {
        let outputs = self.steps.iter().filter(|step| step.kind == Kind::Output);
        outputs.map(Step::said).collect()
    }
}

fn no_interaction() -> Fault {
    Fault::unreadable("the answer is not the JSON of an interaction")
}

fn usage(told: &Fields<'_>) -> Usage {
    let count = |name| told.number(name).unwrap_or(0);
    let thoughts = count("total_thought_tokens");
    Usage {
        prompt_tokens: count("total_input_tokens").saturating_add(count("total_tool_use_tokens")),
        completion_tokens: count("total_output_tokens").saturating_add(thoughts),
        cached_tokens: count("total_cached_tokens"),
        reasoning_tokens: thoughts,
    }
}
