//! A run owns its conversation and returns it in a valid state.

use std::time::Duration;

use innkeeper_toolcall::prompt::Template;
use innkeeper_toolcall::{Tool, Tools};
use serde_json::json;

use super::*;
use crate::content::{ContentBlock, ContentSupport, MediaContent};
use crate::conversation::{HistoryBudget, Message};
use crate::provider::{
    Capabilities, FinishReason, LlmError, LlmErrorKind, Response, ToolSupport, Usage,
};
use crate::settings::AgentSettings;
use crate::tools::UnavailableTool;

pub(super) fn config() -> RunConfig {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tools: Tools = [Tool::new("fs.read", "Reads a file.", schema)].into_iter().collect();
    let mut settings = AgentSettings::default();
    settings.tool_use.tool_calling = ToolCalling::Native;
    RunConfig {
        settings: Arc::new(settings),
        tools: OfferedTools::new(tools, |_| false),
        template: Template::for_model("any"),
        capabilities: Capabilities::default(),
        history_budget: HistoryBudget::default(),
        context_tokens: None,
        max_tokens: 100,
        plain_tools: false,
    }
}

impl RunConfig {
    /// Returns the configuration with other settings.
    pub(super) fn with(mut self, change: impl FnOnce(&mut AgentSettings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    fn with_tool_calling(self, tool_calling: ToolCalling) -> Self {
        self.with(|settings| settings.tool_use.tool_calling = tool_calling)
    }
}

/// A configuration whose server may drop tools; the tools take at least 100 tokens.
fn config_of_dropping_server() -> RunConfig {
    let tools: Tools =
        [Tool::new("fs.read", "Reads a file. ".repeat(100), json!({}))].into_iter().collect();
    let capabilities = Capabilities {
        tools: ToolSupport { native: true, may_be_dropped: true, ..ToolSupport::default() },
        ..Capabilities::default()
    };
    let tools = OfferedTools::new(tools, |_| false);
    RunConfig { tools, capabilities, ..config() }.with_tool_calling(ToolCalling::Auto)
}

fn response_with_prompt_tokens(prompt_tokens: u64) -> Response {
    response_with_usage(Usage { prompt_tokens, ..Usage::default() })
}

fn response_with_usage(usage: Usage) -> Response {
    Response { usage: Some(usage), ..Response::from_text("I cannot read files.") }
}

/// The usage of a server that counts what it has in its cache.
fn usage_with_cached_tokens(prompt_tokens: u64, cached_tokens: u64) -> Usage {
    Usage { prompt_tokens, cached_tokens, ..Usage::default() }
}

fn started(config: RunConfig) -> Run {
    let mut run = Run::new(Arc::new(config), Conversation::new());
    assert!(matches!(run.start("Read."), Ok(Effect::SendRequest(_))));
    run
}

fn results(conversation: &Conversation) -> Vec<(String, bool)> {
    let Some(Message::ToolResults(results)) = conversation.messages().last() else {
        panic!("no results: {conversation:?}")
    };
    results.iter().map(|result| (result.content.to_text().into_owned(), result.is_error)).collect()
}

#[test]
fn an_ended_run_returns_its_conversation_with_a_result_for_every_call() {
    let arguments = r#"{"path": "a"}"#;
    let mut run = Run::new(Arc::new(config()), Conversation::new());
    assert!(matches!(run.start("Read."), Ok(Effect::SendRequest(_))));
    let response = Response::from_tool_calls([("fs.read", arguments), ("fs.read", arguments)]);
    let Effect::CallTools(calls) = run.on_response(&response, 0.0) else { panic!("no calls") };
    assert!(matches!(
        run.on_tool_result(&calls[1].id, "text", CallStatus::Succeeded),
        Effect::AwaitTools
    ));
    let conversation = run.into_conversation();
    assert_eq!(conversation.pending_calls().count(), 0);
    let expected = [(INTERRUPTED_MESSAGE.to_owned(), true), ("text".to_owned(), false)];
    assert_eq!(results(&conversation), expected);
}

#[test]
fn a_run_continues_a_conversation_whose_calls_have_no_results() {
    let mut conversation = Conversation::new();
    conversation.push_user("Read.").unwrap();
    let response = Response::from_tool_calls([("fs.read", "{}")]);
    conversation.push_assistant(response.message).unwrap();
    let unstarted = Run::new(Arc::new(config()), conversation.clone()).into_conversation();
    assert_eq!(results(&unstarted), [(INTERRUPTED_MESSAGE.to_owned(), true)]);
    let mut run = Run::new(Arc::new(config()), conversation);
    assert!(matches!(run.start("And now?"), Ok(Effect::SendRequest(_))));
    assert_eq!(run.into_conversation().messages().len(), 4);
}

fn image() -> ContentBlock {
    let mime_type = Some("image/png".to_owned());
    ContentBlock::Image(MediaContent { mime_type, data: "aGk=".into() })
}

/// Runs a call in prompt mode whose result has an image, after a question with an image, and
/// returns the messages of the second request.
fn messages_in_prompt_mode(content: ContentSupport) -> Vec<Message> {
    let capabilities = Capabilities { content, ..Capabilities::default() };
    let config = RunConfig { capabilities, ..config() }.with_tool_calling(ToolCalling::Prompt);
    let mut run = Run::new(Arc::new(config), Conversation::new());
    run.start(vec!["Like this?".into(), image()]).unwrap();
    let reply = Response::from_text(r#"{"tool": "fs.read", "params": {"path": "a"}}"#);
    let Effect::CallTools(calls) = run.on_response(&reply, 0.0) else { panic!("no calls") };
    let result = vec!["It shows".into(), image()];
    match run.on_tool_result(&calls[0].id, result, CallStatus::Succeeded) {
        Effect::SendRequest(request) => request.messages,
        effect => panic!("{effect:?}"),
    }
}

#[test]
fn in_prompt_mode_the_media_of_a_result_follow_its_line_in_the_user_message() {
    let messages =
        messages_in_prompt_mode(ContentSupport { images: true, ..ContentSupport::default() });
    assert_eq!(messages[0], Message::User(vec!["Like this?".into(), image()].into()));
    let Message::User(results) = &messages[2] else { panic!("{messages:?}") };
    let [ContentBlock::Text(lines), ContentBlock::Text(origin), media] = results.blocks() else {
        panic!("{results:?}")
    };
    assert!(lines.contains("It shows\\n[image, image/png, 2 bytes]"), "{lines}");
    assert!(origin.starts_with("From the result of `fs.read` (call `"), "{origin}");
    assert_eq!(*media, image());
}

#[test]
fn in_prompt_mode_a_model_without_images_gets_the_line_of_a_result_only() {
    let messages = messages_in_prompt_mode(ContentSupport::default());
    let Message::User(results) = &messages[2] else { panic!("{messages:?}") };
    assert_eq!((results.blocks().len(), results.has_media()), (1, false));
    assert!(results.to_text().contains("[image, image/png, 2 bytes]"), "{results:?}");
}

#[test]
fn a_correction_follows_a_question_with_an_image_in_one_message() {
    let config = config().with_tool_calling(ToolCalling::Prompt);
    let mut run = Run::new(Arc::new(config), Conversation::new());
    run.start(vec!["Like this?".into(), image()]).unwrap();
    let reply = Response::from_text(r#"{"tool": "fs.read", "params": {"path": 1, "x": ]}}"#);
    assert!(matches!(run.on_response(&reply, 0.0), Effect::Sleep(_)));
    let Effect::SendRequest(request) = run.on_delay() else { panic!("no request") };
    let [Message::User(content)] = &*request.messages else { panic!("{request:?}") };
    assert_eq!(content.blocks()[..2], ["Like this?".into(), image()]);
    assert!(matches!(&content.blocks()[2..], [ContentBlock::Text(_)]), "{content:?}");
}

#[test]
fn reasoning_is_no_part_of_the_answer_of_a_run_without_tools() {
    let config = RunConfig { tools: OfferedTools::default(), ..config() };
    let mut run = started(config);
    let effect = run.on_response(&Response::from_text("<think>Hm.</think>5.<|im_end|>"), 0.0);
    assert!(matches!(effect, Effect::Finish(RunOutcome::Completed)), "{effect:?}");
    let conversation = run.into_conversation();
    let Some(Message::Assistant(message)) = conversation.messages().last() else {
        panic!("{conversation:?}")
    };
    assert_eq!((message.visible_text().as_str(), message.reasoning().as_str()), ("5.", "Hm."));
}

#[test]
fn a_server_that_read_fewer_tokens_than_the_tools_have_gets_them_in_the_prompt() {
    let thoughts = Response::from_text("<think>I have no tools.</think>");
    let usage = Some(Usage { prompt_tokens: 10, ..Usage::default() });
    for response in [
        response_with_usage(usage_with_cached_tokens(10, 4)),
        Response { usage, ..Response::default() },
        Response { usage, ..thoughts },
    ] {
        let mut run = started(config_of_dropping_server());
        let effect = run.on_response(&response, 0.0);
        assert!(matches!(effect, Effect::Sleep(Duration::ZERO)), "{effect:?}");
        assert_eq!(run.tool_call_mode(), ToolCallMode::Prompt);
        let Effect::SendRequest(request) = run.on_delay() else { panic!("no request") };
        assert!(request.tools.is_empty());
    }
}

#[test]
fn an_answer_without_a_call_is_final_where_the_tools_may_have_been_read() {
    let config = config_of_dropping_server;
    let least = request::estimate_tool_tokens(&config().tools.available) as u64 / 2;
    let small = self::config().tools;
    let certain = Capabilities {
        tools: ToolSupport { native: true, ..ToolSupport::default() },
        ..Capabilities::default()
    };
    let response = response_with_prompt_tokens;
    let cases = [
        ("the tokens of the tools", config(), response(least)),
        ("no tokens", config(), response(0)),
        ("a count that may leave out cached tokens", config(), response(10)),
        (
            "cached tokens next to the others",
            config(),
            response_with_usage(usage_with_cached_tokens(10, least)),
        ),
        ("an unknown number of tokens", config(), Response::from_text("No.")),
        ("few tools", RunConfig { tools: small, ..config() }, response(1)),
        (
            "a server that drops nothing",
            RunConfig { capabilities: certain, ..config() },
            response(1),
        ),
        ("native calls only", config().with_tool_calling(ToolCalling::Native), response(1)),
    ];
    for (case, config, response) in cases {
        let mut run = started(config);
        let effect = run.on_response(&response, 0.0);
        assert!(matches!(effect, Effect::Finish(RunOutcome::Completed)), "{case}: {effect:?}");
        assert_eq!(run.tool_call_mode(), ToolCallMode::Native, "{case}");
    }
    assert!(least > dropped_tools::MIN_DETECTABLE_TOKENS);
}

#[test]
fn a_server_that_once_read_the_tools_keeps_them_whatever_later_counts_say() {
    let mut paused = response_with_prompt_tokens(10_000);
    paused.finish_reason = FinishReason::Paused;
    let mut run = started(config_of_dropping_server());
    assert!(matches!(run.on_response(&paused, 0.0), Effect::SendRequest(_)));
    let effect = run.on_response(&response_with_prompt_tokens(10), 0.0);
    assert!(matches!(effect, Effect::Finish(RunOutcome::Completed)), "{effect:?}");
    assert_eq!(run.tool_call_mode(), ToolCallMode::Native);

    let mut run = started(config_of_dropping_server());
    let call = Response::from_tool_calls([("fs.read", "{}")]);
    let Effect::CallTools(calls) = run.on_response(&call, 0.0) else { panic!("no calls") };
    assert!(matches!(
        run.on_tool_result(&calls[0].id, "text", CallStatus::Succeeded),
        Effect::SendRequest(_)
    ));
    let effect = run.on_response(&response_with_prompt_tokens(10), 0.0);
    assert!(matches!(effect, Effect::Finish(RunOutcome::Completed)), "{effect:?}");
}

#[test]
fn a_correction_example_has_the_attempts_of_its_own_call_only() {
    let malformed = |name: &str| {
        Response::from_text(format!(r#"{{"tool": "fs.read", "params": {{"{name}": ]}}}}"#))
    };
    let valid = Response::from_text(r#"{"tool": "fs.read", "params": {"path": "b"}}"#);
    let mut run = started(config().with_tool_calling(ToolCalling::Auto));
    assert!(matches!(run.on_response(&malformed("first"), 0.0), Effect::Sleep(_)));
    assert!(matches!(run.on_delay(), Effect::SendRequest(_)));
    let native = Response::from_tool_calls([("fs.read", r#"{"path": "a"}"#)]);
    for response in [&native, &valid] {
        if *response == valid {
            assert!(matches!(run.on_response(&malformed("second"), 0.0), Effect::Sleep(_)));
            assert!(matches!(run.on_delay(), Effect::SendRequest(_)));
        }
        let Effect::CallTools(calls) = run.on_response(response, 0.0) else { panic!("no calls") };
        assert!(matches!(
            run.on_tool_result(&calls[0].id, "text", CallStatus::Succeeded),
            Effect::SendRequest(_)
        ));
    }
    let [example] = run.correction_examples() else { panic!("{:?}", run.correction_examples()) };
    let texts: Vec<_> = example.attempts.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(texts, [r#"{"tool": "fs.read", "params": {"second": ]}}"#]);
    assert_eq!(example.user_message, "Read.");
}

#[test]
fn a_name_of_a_lost_tool_never_means_the_tool_of_another_server() {
    let tools: Tools =
        ["k.delete", "k.list"].map(|name| Tool::new(name, "", json!({}))).into_iter().collect();
    let lost = UnavailableTool {
        name: "s.delete".to_owned(),
        server: "s".into(),
        reason: "it was killed".into(),
    };
    let offered = OfferedTools::new(tools, |_| false).with_unavailable(vec![lost]);
    for (name, problem) in
        [("delete", "there is no tool `delete`"), ("s_delete", "killed"), ("s.delete", "killed")]
    {
        let mut run = started(RunConfig { tools: offered.clone(), ..config() });
        let effect = run.on_response(&Response::from_tool_calls([(name, "{}")]), 0.0);
        assert!(!matches!(&effect, Effect::CallTools(calls) if !calls.is_empty()), "{effect:?}");
        let [rejected] = &run.take_rejected_calls()[..] else { panic!("{name}") };
        assert!(rejected.error.contains(problem), "{name}: {}", rejected.error);
    }
    // A tool that the run leaves out doesn't bring the lost one's name back.
    let fewer = offered.without(|name| name == "k.list");
    assert!(fewer.unavailable_message("s.delete").is_some() && fewer.known.get("k.list").is_none());
}

#[test]
fn a_call_that_the_provider_could_not_read_is_a_rejected_call() {
    let malformed = LlmError::new("scripted", LlmErrorKind::MalformedToolCall, "bad JSON");
    let mut run = started(config());
    run.on_error(malformed, 0.0);
    let response =
        Response { finish_reason: FinishReason::MalformedToolCall, ..Response::default() };
    run.on_delay();
    run.on_response(&response, 0.0);
    let errors: Vec<_> = run.take_rejected_calls().into_iter().map(|call| call.error).collect();
    assert_eq!(errors, ["bad JSON", "the tool call is malformed"]);
    assert_eq!(run.errors().len(), 2);
}
