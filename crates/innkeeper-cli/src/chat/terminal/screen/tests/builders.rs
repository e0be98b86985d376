//! Events and questions for the tests of the screen.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_agent::ToolAnnotations;
use innkeeper_agent::agent::{AgentEvent, RunResult, ToolCallRecord};
use innkeeper_agent::server_requests::ElicitationResponse;
use innkeeper_agent::server_requests::form::Form;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::Screen;
use super::rows;
use crate::chat::question::{
    ApprovalAnswer, ApprovalQuestion, ElicitationQuestion, Question, RequestedInput,
    SamplingQuestion,
};

/// Time after which a question on the screen takes keys.
pub(super) const QUESTION_DELAY: Duration = Duration::from_secs(2);

/// Shows a question, and waits until the question takes keys.
pub(super) fn ask(screen: &mut Screen, question: Question) {
    screen.on_question(question);
    for step in 1..=2 {
        let area = ratatui::layout::Rect::new(0, 0, 80, 24);
        let mut buffer = ratatui::buffer::Buffer::empty(area);
        screen.draw(area, &mut buffer, Instant::now() + QUESTION_DELAY * step);
    }
}

pub(super) fn approval_of(arguments: &str) -> (Question, oneshot::Receiver<ApprovalAnswer>) {
    let (sender, receiver) = oneshot::channel();
    let question = ApprovalQuestion {
        tool: "files.write".to_owned(),
        server: Some("files".to_owned()),
        arguments: arguments.to_owned(),
        description: Some("Writes a file.".to_owned()),
        annotations: ToolAnnotations::default(),
        is_pinned: false,
        permanent_obstacle: None,
    };
    (Question::Approval(question, sender), receiver)
}

pub(super) fn approval() -> (Question, oneshot::Receiver<ApprovalAnswer>) {
    approval_of(r#"{"path":"a"}"#)
}

pub(super) fn sampling() -> (Question, oneshot::Receiver<bool>) {
    let (sender, receiver) = oneshot::channel();
    let question = SamplingQuestion {
        server: "notes".to_owned(),
        call: Some("notes.summarize".to_owned()),
        model: "qwen".to_owned(),
        messages: vec![
            ("system", "Be brief.".to_owned()),
            ("user", "Summarize the notes of the week.".to_owned()),
        ],
        max_tokens: 200,
    };
    (Question::Sampling(question, sender), receiver)
}

pub(super) fn elicitation(
    input: RequestedInput,
) -> (Question, oneshot::Receiver<ElicitationResponse>) {
    let (sender, receiver) = oneshot::channel();
    let question = ElicitationQuestion {
        server: "travel".to_owned(),
        call: Some("travel.book".to_owned()),
        message: "Which journey do you want?".to_owned(),
        input,
    };
    (Question::Elicitation(question, sender), receiver)
}

pub(super) fn form(properties: &Value) -> RequestedInput {
    let names: Vec<&String> = properties.as_object().unwrap().keys().take(1).collect();
    let schema = json!({ "type": "object", "properties": properties, "required": names });
    RequestedInput::Form(Form::parse(&schema).unwrap())
}

pub(super) fn form_of_each_kind() -> RequestedInput {
    form(&json!({
        "name": { "type": "string", "title": "Name", "description": "As in the passport" },
        "seats": { "type": "integer", "minimum": 1, "maximum": 9, "default": 1 },
        "window": { "type": "boolean" },
        "class": { "type": "string", "enum": ["first", "second"] },
        "meals": {
            "type": "array",
            "items": { "type": "string", "enum": ["soup", "salad", "cake"] },
        },
    }))
}

pub(super) fn url() -> RequestedInput {
    RequestedInput::Url {
        url: "https://travel.example/pay?order=7".to_owned(),
        host: "travel.example".to_owned(),
    }
}

pub(super) fn started(id: &str, tool: &str, arguments: &str) -> AgentEvent {
    AgentEvent::ToolCallStarted {
        id: id.to_owned(),
        tool: tool.to_owned(),
        arguments: Arc::from(arguments),
    }
}

pub(super) fn progress(id: &str, progress: f64, message: Option<&str>) -> AgentEvent {
    AgentEvent::ToolCallProgress {
        id: id.to_owned(),
        tool: "files.copy".to_owned(),
        progress: innkeeper_host::Progress {
            progress,
            total: Some(10.0),
            message: message.map(str::to_owned),
            meta: None,
            params: Arc::from(serde_json::value::RawValue::from_string("{}".to_owned()).unwrap()),
        },
    }
}

pub(super) fn finished(
    id: &str,
    arguments: &Value,
    success: bool,
    result: &str,
    origin: &str,
) -> AgentEvent {
    let record: ToolCallRecord = serde_json::from_value(json!({
        "iteration": 1,
        "id": id,
        "tool": "files.copy",
        "arguments": arguments,
        "output": null,
        "success": success,
        "result_text": result,
        "elapsed": { "secs": 2, "nanos": 500_000_000 },
        "cached": false,
        "origin": origin,
        "failed_attempts": 0,
        "reasoning": "",
    }))
    .unwrap();
    AgentEvent::ToolCallFinished(Arc::new(record))
}

pub(super) fn run_finished(outcome: &Value) -> AgentEvent {
    let result: RunResult = serde_json::from_value(json!({
        "outcome": outcome,
        "text": "",
        "tool_calls": [],
        "stats": innkeeper_agent::run::RunStats::default(),
        "tool_call_mode": null,
        "correction_examples": [],
        "elapsed": { "secs": 1, "nanos": 0 },
    }))
    .unwrap();
    AgentEvent::Finished(Box::new(result))
}

pub(super) fn show(screen: &mut Screen, event: &AgentEvent) {
    screen.on_event(event, |_| Some("files".to_owned()), Instant::now());
}

/// Asserts that a frame has a text.
#[track_caller]
pub(super) fn assert_shown(screen: &mut Screen, (width, height): (u16, u16), text: &str) {
    let drawn = rows(screen, width, height);
    assert!(drawn.contains(text), "{text} is missing:\n{drawn}");
}
