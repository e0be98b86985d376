//! What our parser makes of an answer, and what our loop does with it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use innkeeper_agent::agent::{Agent, Settings};
use innkeeper_agent::conversation::Message;
use innkeeper_agent::provider::{Capabilities, Finish, LlmError, LlmProvider, Request, Response};
use innkeeper_agent::tools::{Hints, Offered, Output, Running, ToolRunner};
use innkeeper_toolcall::event::Finish as Ended;
use innkeeper_toolcall::{Event, Format, Interceptor, Options, Tools};
use serde_json::{Value, json};

use super::slip::Case;
use super::truth::{Entry, Verdict, judge};

/// What came of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The calls that were meant.
    Repaired,
    /// The same, after the model was told once what was wrong.
    Corrected,
    /// No call that was not meant, but not all that were.
    Missed,
    /// A call that was not meant.
    Wrong,
}

impl Outcome {
    /// Its name in the counts.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Repaired => "repaired",
            Self::Corrected => "corrected",
            Self::Missed => "missed",
            Self::Wrong => "wrong",
        }
    }
}

/// The calls of an answer; none where something in it was meant as a call and is none that fits.
pub(super) fn read(entry: &Entry, case: &Case, format: Format) -> Vec<(String, Value)> {
    let (mut calls, mut problems) = (Vec::new(), 0);
    let mut sink = |event: Event<'_>| match event {
        Event::Call { call, .. } => {
            let fits = entry.toolbox.violations(call).is_ok_and(|found| found.is_empty());
            problems += usize::from(!fits);
            let arguments = serde_json::from_str(&call.arguments.to_string()).unwrap();
            calls.push((call.name.clone(), arguments));
        }
        Event::Rejected { .. } | Event::Incomplete { .. } => problems += 1,
        Event::Text(_)
        | Event::Reasoning(_)
        | Event::Frame(_)
        | Event::CallStart { .. }
        | Event::Arguments { .. } => {}
    };
    let options = Options { format, ..Options::default() };
    let mut interceptor = Interceptor::new(entry.tools.clone(), &options);
    interceptor.push(&case.text, &mut sink);
    interceptor.finish(if case.cut { Ended::Length } else { Ended::Stop }, &mut sink);
    if problems == 0 { calls } else { Vec::new() }
}

/// A model and tools for one question, with our loop between them.
pub(super) struct Room {
    model: Arc<Model>,
    desk: Arc<Desk>,
    agent: Agent,
}

impl Room {
    pub(super) fn new(entry: &Entry) -> Self {
        let model = Arc::new(Model::default());
        let desk = Arc::new(Desk { tools: entry.tools.clone(), called: Mutex::default() });
        let agent = Agent::new(model.clone(), desk.clone(), Settings::default());
        Self { model, desk, agent }
    }

    /// What our loop does with the answer.
    pub(super) async fn take(&mut self, case: &Case) -> Outcome {
        let finish = if case.cut { Finish::Length } else { Finish::Stop };
        let first = Response { finish, ..Response::text(&case.text) };
        *self.model.0.lock().unwrap() = (Some(first), Some(Response::text(&case.clean)));
        self.agent.clear();
        let report = self.agent.run("Do it.").await;
        let called = std::mem::take(&mut *self.desk.called.lock().unwrap());
        match (judge(&called, &case.truths), report.tally.corrections) {
            (Verdict::Right, 0) => Outcome::Repaired,
            (Verdict::Right, _) => Outcome::Corrected,
            (Verdict::Short, _) => Outcome::Missed,
            (Verdict::Wrong, _) => Outcome::Wrong,
        }
    }
}

/// Says it wrong, and says it right if, and only if, it is told what was wrong with which call.
#[derive(Default)]
struct Model(Mutex<(Option<Response>, Option<Response>)>);

#[async_trait]
impl LlmProvider for Model {
    async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        let mut says = self.0.lock().unwrap();
        if let Some(first) = says.0.take() {
            return Ok(first);
        }
        let told = match request.messages.last() {
            Some(Message::User(text)) => &**text,
            Some(Message::Answer(_) | Message::Results(_)) | None => "",
        };
        let again = if names_a_problem(told) { says.1.take() } else { None };
        Ok(again.unwrap_or_else(|| Response::text("Done.")))
    }

    fn name(&self) -> &str {
        "model"
    }

    fn supports_tools(&self) -> bool {
        false
    }

    fn model(&self) -> &str {
        "model"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
}

/// Whether the text says of one attempt what was wrong: with a call by its name, or that it has no
/// end.
fn names_a_problem(told: &str) -> bool {
    let attempt = told.lines().find_map(|line| line.strip_prefix("Attempt 1: "));
    attempt.is_some_and(|it| it.contains('`') || it.contains("ends before it is complete"))
}

/// Keeps what it was called with.
struct Desk {
    tools: Arc<Tools>,
    called: Mutex<Vec<(String, Value)>>,
}

impl ToolRunner for Desk {
    fn offered(&self) -> Vec<Offered> {
        let tools = self.tools.iter().cloned();
        tools.map(|tool| Offered { tool, hints: Hints::default() }).collect()
    }

    fn run<'r>(&'r self, name: &'r str, arguments: Value) -> Running<'r> {
        Box::pin(async move {
            self.called.lock().unwrap().push((name.to_owned(), arguments));
            let result = json!({"content": [{"type": "text", "text": "done"}]});
            Ok(Output::new(serde_json::value::to_raw_value(&result).unwrap(), false))
        })
    }
}
