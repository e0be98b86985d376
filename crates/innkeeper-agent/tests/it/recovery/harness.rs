//! Runs malformed calls through the parser and the agent.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::conversation::Message;
use innkeeper_agent::provider::{
    Capabilities, FinishReason, LlmError, LlmProvider, Request, Response,
};
use innkeeper_agent::tools::{
    AvailableTool, ToolAnnotations, ToolCallFuture, ToolCallOptions, ToolOutput, ToolRunner,
};
use innkeeper_toolcall::event::TextEnd as Ended;
use innkeeper_toolcall::{Format, ParseEvent, ParserOptions, ToolCallParser, Tools};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ground_truth::{BenchmarkEntry, CallVerdict, judge};
use super::mistake::MistakeCase;

/// The outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecoveryOutcome {
    /// The agent ran the expected calls.
    Repaired,
    /// The agent ran the expected calls after one correction request.
    Corrected,
    /// The agent ran some of the expected calls or none, and no other.
    Missed,
    /// The agent ran an unexpected call.
    Wrong,
}

impl RecoveryOutcome {
    /// Returns the name in the counts.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Repaired => "repaired",
            Self::Corrected => "corrected",
            Self::Missed => "missed",
            Self::Wrong => "wrong",
        }
    }
}

/// Parses the calls of a text; returns none if any call is invalid.
pub(super) fn parse_calls(
    entry: &BenchmarkEntry,
    case: &MistakeCase,
    format: Format,
) -> Vec<(String, Value)> {
    let (mut calls, mut problems) = (Vec::new(), 0);
    let mut sink = |event: ParseEvent<'_>| match event {
        ParseEvent::Call { call, .. } => {
            let fits =
                entry.tool_validator.violations(call).is_ok_and(|violations| violations.is_empty());
            problems += usize::from(!fits);
            let arguments = serde_json::from_str(&call.arguments.to_string()).unwrap();
            calls.push((call.name.clone(), arguments));
        }
        ParseEvent::Rejected { .. } | ParseEvent::Incomplete { .. } => problems += 1,
        ParseEvent::Text(_)
        | ParseEvent::Reasoning(_)
        | ParseEvent::Markup(_)
        | ParseEvent::CallStart { .. }
        | ParseEvent::Arguments { .. } => {}
    };
    let options = ParserOptions { format, ..ParserOptions::default() };
    let mut parser = ToolCallParser::new(entry.tools.clone(), &options);
    parser.push(&case.text, &mut sink);
    parser.finish(if case.is_truncated { Ended::Length } else { Ended::Stop }, &mut sink);
    if problems == 0 { calls } else { Vec::new() }
}

/// An agent with a model and tools for one question.
pub(super) struct AgentHarness {
    model: Arc<CorrectableModel>,
    tools: Arc<RecordingTools>,
    agent: Agent,
}

impl AgentHarness {
    pub(super) fn new(entry: &BenchmarkEntry) -> Self {
        let model = Arc::new(CorrectableModel::default());
        let tools =
            Arc::new(RecordingTools { tools: entry.tools.clone(), calls: Mutex::default() });
        let agent = Agent::new(model.clone(), tools.clone(), AgentSettings::default());
        Self { model, tools, agent }
    }

    /// Runs the agent with a malformed response.
    pub(super) async fn run_case(&mut self, case: &MistakeCase) -> RecoveryOutcome {
        let finish_reason =
            if case.is_truncated { FinishReason::Length } else { FinishReason::Stop };
        let first = Response { finish_reason, ..Response::from_text(&case.text) };
        *self.model.0.lock().unwrap() = (Some(first), Some(Response::from_text(&case.clean)));
        self.agent.clear();
        let report = self.agent.run("Do it.").await;
        let calls = std::mem::take(&mut *self.tools.calls.lock().unwrap());
        match (judge(&calls, &case.expected_calls), report.stats.corrections) {
            (CallVerdict::Right, 0) => RecoveryOutcome::Repaired,
            (CallVerdict::Right, _) => RecoveryOutcome::Corrected,
            (CallVerdict::Incomplete, _) => RecoveryOutcome::Missed,
            (CallVerdict::Wrong, _) => RecoveryOutcome::Wrong,
        }
    }
}

/// A model that writes a malformed call first, and the correct call only if the correction message
/// names the problem.
#[derive(Default)]
struct CorrectableModel(Mutex<(Option<Response>, Option<Response>)>);

#[async_trait]
impl LlmProvider for CorrectableModel {
    async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        let mut replies = self.0.lock().unwrap();
        if let Some(first) = replies.0.take() {
            return Ok(first);
        }
        let last_message = match request.messages.last() {
            Some(Message::User(content)) => content.to_text(),
            Some(Message::Assistant(_) | Message::ToolResults(_)) | None => "".into(),
        };
        let corrected = if names_a_problem(&last_message) { replies.1.take() } else { None };
        Ok(corrected.unwrap_or_else(|| Response::from_text("Done.")))
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

/// Returns whether the first attempt's error names the call or says that the call is incomplete.
fn names_a_problem(message: &str) -> bool {
    let attempt = message.lines().find_map(|line| line.strip_prefix("Attempt 1: "));
    attempt.is_some_and(|attempt_text| {
        attempt_text.contains('`') || attempt_text.contains("the tool call is incomplete")
    })
}

/// Tools that record their calls.
struct RecordingTools {
    tools: Arc<Tools>,
    calls: Mutex<Vec<(String, Value)>>,
}

impl ToolRunner for RecordingTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let tools = self.tools.iter().cloned();
        tools.map(|tool| AvailableTool::new(tool, ToolAnnotations::default())).collect()
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let arguments: Value = serde_json::from_str(arguments.get()).unwrap();
        Box::pin(async move {
            self.calls.lock().unwrap().push((name.to_owned(), arguments));
            let result = json!({"content": [{"type": "text", "text": "done"}]});
            Ok(ToolOutput::new(serde_json::value::to_raw_value(&result).unwrap(), false))
        })
    }
}
