//! Random scenario steps.

use std::time::Duration;

use innkeeper_toolcall::Tool;
use proptest::prelude::*;
use serde_json::json;

use super::response_bodies::ResponseEnd;
use crate::provider::{LlmErrorKind, ProviderApi};
use crate::tools::{AvailableTool, ToolAnnotations};

/// Returns two models of each API, one of which has more capabilities.
pub(super) fn model_names(api: ProviderApi) -> [&'static str; 2] {
    match api {
        ProviderApi::OpenAiChat => ["gpt-4o", "any"],
        ProviderApi::OpenAiResponses => ["gpt-6.1-terra", "any"],
        ProviderApi::Anthropic => ["claude-sonnet-5-5", "any"],
        ProviderApi::GeminiGenerate | ProviderApi::GeminiInteractions => {
            ["gemini-3.8-flash", "any"]
        }
        ProviderApi::Ollama => ["llama3.1:8b", "any"],
    }
}

/// Names that some APIs encode differently, and two names that become equal in the process.
fn tool_names() -> [String; 7] {
    let long = format!("server.{}", "x".repeat(90));
    ["fs.read", "fs_read", "FS.read", "1st.größe", "a.b:c-d/e", "stdio.list_tables"]
        .map(str::to_owned)
        .into_iter()
        .chain([long])
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

pub(super) const TEXTS: [&str; 8] = [
    "Hello. ",
    "",
    " ",
    "größer \u{1F600} \"q\" \\ \u{2028}",
    r#"{"tool": "fs.read", "params": {"path": "a"}} "#,
    r#"{"tool": "fs.read", "params": {"path": "#,
    "<think>Hm.</think>I say {nothing}.",
    r#"<tool_call>{"name": "fs_read", "arguments": {"path": "b"}}</tool_call>"#,
];

pub(super) const ARGUMENTS: [&str; 9] = [
    r#"{"path": "a"}"#,
    r#"{ "path":"\u0061/é", "n": 123456789012345678901234567890 }"#,
    "{}",
    "",
    r#"{"path": "#,
    "[1]",
    r#""text""#,
    "null",
    r#"{"path": {"path": 1.10}}"#,
];

pub(super) const CALL_IDS: [&str; 5] = ["", "same", "call_1", "id with spaces/é", "call_own"];

/// What the scripted model does with a request.
#[derive(Clone, Debug)]
pub(super) enum ModelAction {
    Respond { parts: Vec<PartSpec>, ending: ResponseEnd },
    Fail(usize),
}

/// A content part of a response, independent of the API.
#[derive(Clone, Debug)]
pub(super) enum PartSpec {
    Text(usize),
    Reasoning(usize),
    Call { id: usize, tool: usize, arguments: usize },
}

#[derive(Clone, Debug)]
pub(super) enum ScenarioStep {
    /// The user sends a message; the run is dropped after `polls` polls.
    SendMessage {
        streaming: bool,
        polls: Option<usize>,
        model_actions: Vec<ModelAction>,
        tool_outcomes: Vec<usize>,
    },
    /// The runner lists other tools: by number, each with one of two schemas.
    SetTools(Vec<(usize, bool)>),
    /// The agent changes to another model.
    SwitchModel(usize, usize),
    Clear,
}

fn part_spec() -> impl Strategy<Value = PartSpec> {
    prop_oneof![
        2 => (0..TEXTS.len()).prop_map(PartSpec::Text),
        2 => (0_usize..2).prop_map(PartSpec::Reasoning),
        4 => (0..CALL_IDS.len() + 3, 0_usize..12, 0..ARGUMENTS.len() + 6)
            .prop_map(|(id, tool, arguments)| PartSpec::Call { id, tool, arguments }),
    ]
}

fn response_end() -> impl Strategy<Value = ResponseEnd> {
    prop_oneof![
        8 => Just(ResponseEnd::Normal),
        1 => Just(ResponseEnd::Length),
        1 => Just(ResponseEnd::Refused),
        1 => Just(ResponseEnd::Malformed),
        1 => Just(ResponseEnd::Paused),
        1 => Just(ResponseEnd::Unknown),
    ]
}

fn model_action() -> impl Strategy<Value = ModelAction> {
    let say = (prop::collection::vec(part_spec(), 0..6), response_end());
    prop_oneof![
        6 => say.prop_map(|(parts, ending)| ModelAction::Respond { parts, ending }),
        1 => (0_usize..14).prop_map(ModelAction::Fail),
    ]
}

pub(super) fn scenario_step() -> impl Strategy<Value = ScenarioStep> {
    // A model that never writes a valid call.
    let stubborn =
        ModelAction::Respond { parts: vec![PartSpec::Text(5)], ending: ResponseEnd::Normal };
    let moves = prop_oneof![
        8 => prop::collection::vec(model_action(), 0..7),
        1 => Just(vec![stubborn; 6]),
    ];
    let say = (
        any::<bool>(),
        prop::option::weighted(0.4, 0_usize..30),
        moves,
        prop::collection::vec(0_usize..6, 4),
    );
    prop_oneof![
        6 => say.prop_map(|(streaming, polls, model_actions, tool_outcomes)| {
            ScenarioStep::SendMessage { streaming, polls, model_actions, tool_outcomes }
        }),
        2 => prop::collection::vec((0_usize..7, any::<bool>()), 0..5).prop_map(ScenarioStep::SetTools),
        2 => (0_usize..6, 0_usize..2).prop_map(|(wire, model)| ScenarioStep::SwitchModel(wire, model)),
        1 => Just(ScenarioStep::Clear),
    ]
}

pub(super) fn error_kind(number: usize) -> LlmErrorKind {
    match number {
        0 => LlmErrorKind::RetryLater { after: None },
        1 => LlmErrorKind::RetryLater { after: Some(Duration::from_secs(3600)) },
        2 => LlmErrorKind::Connection,
        3 => LlmErrorKind::TimedOut,
        4 => LlmErrorKind::Authentication,
        5 => LlmErrorKind::Billing,
        6 => LlmErrorKind::NotFound,
        7 => LlmErrorKind::ContextLength,
        8 => LlmErrorKind::ToolsUnsupported,
        9 | 10 => LlmErrorKind::MalformedToolCall,
        11 => LlmErrorKind::Refusal,
        12 => LlmErrorKind::InvalidResponse,
        _ => LlmErrorKind::InvalidRequest,
    }
}

pub(super) fn available_tools(tools: &[(usize, bool)]) -> Vec<AvailableTool> {
    let names = tool_names();
    let mut observed = std::collections::HashSet::new();
    let tools = tools.iter().filter(|(name, _)| observed.insert(*name)).map(|(name, wide)| {
        let path = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let strict = json!({"type": "object", "properties": {"path": {"type": "string"}},
            "required": ["path"], "additionalProperties": false});
        let schema = if *wide { path } else { strict };
        let tool = Tool::new(&*names[*name], "Does something with a path.", schema);
        AvailableTool::new(tool, ToolAnnotations::default())
    });
    tools.collect()
}
