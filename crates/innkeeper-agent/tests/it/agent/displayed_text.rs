//! The displayed text of a streamed response is the text in the conversation.

use innkeeper_agent::agent::{AgentEvent, AgentSettings};
use innkeeper_agent::conversation::{
    AssistantMessage, ContentPart, Message, PartContent, ToolCall,
};
use innkeeper_agent::provider::{FinishReason, Response, ScriptedProvider};
use innkeeper_agent::run::ToolCalling;

use super::{READ_CALL, harness, text_reply};

fn text(text: &str) -> PartContent {
    PartContent::Text(text.to_owned())
}

fn native_call() -> PartContent {
    PartContent::ToolCall(ToolCall {
        id: String::new(),
        name: "fs.read".to_owned(),
        arguments: r#"{"path": "native"}"#.to_owned(),
        is_cut: false,
    })
}

/// What the user and the tools see of a streamed response.
struct Displayed {
    text: String,
    reasoning: String,
    /// The tools whose calls were announced.
    detected: Vec<String>,
    /// The first message of the model in the conversation.
    kept: AssistantMessage,
    /// The paths of the calls that ran.
    paths: Vec<String>,
}

/// Streams a response of these parts.
async fn stream(
    parts: impl IntoIterator<Item = PartContent>,
    tool_calling: ToolCalling,
) -> Displayed {
    let message = AssistantMessage { parts: parts.into_iter().map(ContentPart::new).collect() };
    let first = Response { message, finish_reason: FinishReason::Stop, ..Response::default() };
    let mut settings = AgentSettings::default();
    settings.tool_use.tool_calling = tool_calling;
    let test_env = harness(ScriptedProvider::new([Ok(first), text_reply("")]), settings);
    let (mut text, mut reasoning, mut detected) = (String::new(), String::new(), Vec::new());
    test_env
        .agent
        .run_streaming("Read.", |event| match event {
            AgentEvent::Text(chunk) => text.push_str(&chunk),
            AgentEvent::Reasoning(chunk) => reasoning.push_str(&chunk),
            AgentEvent::ToolCallDetected { tool } => detected.push(tool),
            AgentEvent::ToolCallProgress { .. }
            | AgentEvent::ToolCallStarted { .. }
            | AgentEvent::ToolCallFinished(_)
            | AgentEvent::Planned(_)
            | AgentEvent::HistorySummaryStarted { .. }
            | AgentEvent::HistoryShortened { .. }
            | AgentEvent::ResponseFinished { .. }
            | AgentEvent::Warned(_)
            | AgentEvent::ToolsOmitted(_)
            | AgentEvent::Retrying { .. }
            | AgentEvent::MessagesAdded(_)
            | AgentEvent::Finished(_) => {}
        })
        .await;
    let conversation = test_env.agent.conversation();
    let Message::Assistant(kept) = &conversation.messages()[1] else { panic!("no response") };
    let calls = test_env.tools.calls().into_iter();
    let paths = calls.map(|(_, arguments)| arguments["path"].as_str().unwrap().to_owned());
    Displayed { text, reasoning, detected, kept: (**kept).clone(), paths: paths.collect() }
}

#[tokio::test(start_paused = true)]
async fn a_call_in_text_beside_a_native_call_is_displayed_and_kept_as_text() {
    let written = format!("I look. {READ_CALL} Then I say.");
    let split = READ_CALL.len() / 2;
    for parts in [
        vec![text(&written), native_call()],
        vec![native_call(), text(&written)],
        vec![text(&READ_CALL[..split]), native_call(), text(&READ_CALL[split..])],
        vec![text("<think>Hm.</think>"), text(&written), native_call(), text(" Done.")],
    ] {
        let thinks = matches!(&parts[0], PartContent::Text(text) if text.starts_with("<think>"));
        let Displayed { text, reasoning, kept, paths, .. } =
            stream(parts, ToolCalling::Native).await;
        assert!(text.contains(READ_CALL), "{text}");
        assert_eq!(text, kept.visible_text());
        assert_eq!(reasoning, kept.reasoning());
        assert_eq!(reasoning.is_empty(), !thinks);
        assert_eq!(kept.calls().count(), 1);
        assert_eq!(paths, ["native"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_in_text_without_a_native_call_is_run_and_neither_displayed_nor_kept_as_text() {
    let alone = ("", " ");
    let in_prose = ("I look.\n", " Then I say.");
    for (tool_calling, (before, after)) in
        [(ToolCalling::Native, alone), (ToolCalling::Prompt, in_prose)]
    {
        let written = format!("<think>Hm.</think>{before}{READ_CALL}{after}");
        let Displayed { text, reasoning, detected, kept, paths } =
            stream([text(&written)], tool_calling).await;
        assert_eq!((text.as_str(), reasoning.as_str()), (&*format!("{before}{after}"), "Hm."));
        assert_eq!((kept.visible_text(), kept.reasoning()), (text, reasoning));
        assert_eq!(detected, ["fs.read"]);
        assert_eq!(kept.calls().count(), 1);
        assert_eq!(paths, ["a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_split_over_two_texts_is_one_call() {
    let split = READ_CALL.len() / 2;
    let parts = [text(&READ_CALL[..split]), text(&READ_CALL[split..]), text("Read it.")];
    let Displayed { text, kept, paths, .. } = stream(parts, ToolCalling::Prompt).await;
    assert_eq!((text.as_str(), kept.visible_text().as_str()), ("Read it.", "Read it."));
    assert_eq!(paths, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_in_text_after_a_native_call_is_not_announced() {
    let written = format!("I look. {READ_CALL}");
    let displayed = stream([native_call(), text(&written)], ToolCalling::Native).await;
    assert_eq!(displayed.detected, ["fs.read"], "the native call");
}
