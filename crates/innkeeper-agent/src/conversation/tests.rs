//! Tests of the message order and of the part of a conversation in a request.

mod media_limit;

use std::time::Duration;

use super::*;
use crate::content::ContentSupport;

/// Returns the messages of a request with at most this number of tokens, as far as possible.
fn view(messages: &[Message], max_tokens: usize) -> Vec<Message> {
    let estimate = |message: &Message| estimate_message_tokens(message, ContentSupport::default());
    let tokens: usize = messages.iter().map(estimate).sum();
    let cut = match tokens > max_tokens {
        true => choose_cut(messages, 0, max_tokens, estimate).unwrap_or_default(),
        false => 0,
    };
    visible_messages(messages, &OmittedHistory { messages: cut, ..OmittedHistory::default() })
}

fn call_part(id: &str) -> ContentPart {
    let (id, name) = (id.to_owned(), "tool".to_owned());
    ContentPart::new(PartContent::ToolCall(ToolCall {
        id,
        name,
        arguments: "{}".to_owned(),
        is_cut: false,
    }))
}

fn tool_result(id: &str) -> ToolResult {
    let (name, text) = ("tool".to_owned(), format!("of {id}"));
    ToolResult { id: id.to_owned(), name, content: text.into(), is_error: false }
}

fn pending_ids(conversation: &Conversation) -> Vec<String> {
    conversation.pending_calls().map(|call| call.id.clone()).collect()
}

fn call_ids(message: &Message) -> Vec<&str> {
    match message {
        Message::User(_) => Vec::new(),
        Message::Assistant(assistant) => assistant.calls().map(|call| call.id.as_str()).collect(),
        Message::ToolResults(results) => results.iter().map(|result| result.id.as_str()).collect(),
    }
}

#[test]
fn while_a_call_is_pending_no_other_message_is_accepted() {
    let mut conversation = Conversation::new();
    conversation.push_user("hello").unwrap();
    conversation
        .push_assistant(AssistantMessage { parts: vec![call_part("a"), call_part("b")] })
        .unwrap();
    let error = ConversationError::MissingResult { id: "a".to_owned(), tool: "tool".to_owned() };
    assert_eq!(conversation.push_user("and?"), Err(error.clone()));
    assert_eq!(conversation.push_assistant(AssistantMessage::from_text("so")), Err(error));
    let missing = ConversationError::MissingResult { id: "b".to_owned(), tool: "tool".to_owned() };
    assert_eq!(conversation.push_tool_results(vec![tool_result("a")]), Err(missing));
    let strange = ConversationError::UnknownCall { id: "c".to_owned() };
    assert_eq!(
        conversation.push_tool_results(vec![tool_result("a"), tool_result("b"), tool_result("c")]),
        Err(strange)
    );
    assert_eq!(conversation.messages().len(), 2);
    conversation.push_tool_results(vec![tool_result("b"), tool_result("a")]).unwrap();
    assert_eq!(
        conversation.messages()[2],
        Message::ToolResults(vec![tool_result("a"), tool_result("b")].into())
    );
    conversation.push_user("thanks").unwrap();
}

#[test]
fn no_id_stands_for_two_calls() {
    let mut conversation = Conversation::new();
    conversation
        .push_assistant(AssistantMessage {
            parts: vec![call_part("call_1"), call_part(""), call_part("call_1")],
        })
        .unwrap();
    assert_eq!(pending_ids(&conversation), ["call_1", "call_2", "call_3"]);
    conversation.fail_pending("stopped");
    conversation.push_assistant(AssistantMessage { parts: vec![call_part("call_3")] }).unwrap();
    assert_eq!(pending_ids(&conversation), ["call_4"]);
}

#[test]
fn the_provider_block_of_a_call_is_dropped_when_its_id_changes() {
    let native = ProviderBlock {
        api: ProviderApi::Anthropic,
        model: "m".to_owned(),
        json: serde_json::value::to_raw_value(&1).unwrap(),
    };
    let new_part = |id| ContentPart { provider_block: Some(native.clone()), ..call_part(id) };
    let mut conversation = Conversation::new();
    conversation
        .push_assistant(AssistantMessage {
            parts: vec![new_part("x"), new_part("x"), new_part("")],
        })
        .unwrap();
    let Message::Assistant(assistant) = &conversation.messages()[0] else { panic!("no answer") };
    let have_blocks: Vec<_> =
        assistant.parts.iter().map(|part| part.provider_block.is_some()).collect();
    assert_eq!(have_blocks, [true, false, true]);
    assert!(native.for_model(ProviderApi::Anthropic, "m").is_some());
    assert!(native.for_model(ProviderApi::Anthropic, "n").is_none());
    assert!(native.for_model(ProviderApi::Ollama, "m").is_none());
}

#[test]
fn an_interrupted_call_can_be_failed_and_the_conversation_continues() {
    let mut conversation = Conversation::new();
    conversation.push_user("hello").unwrap();
    conversation.fail_pending("nothing is open");
    conversation
        .push_assistant(AssistantMessage { parts: vec![call_part("a"), call_part("b")] })
        .unwrap();
    conversation.fail_pending("cancelled");
    let Message::ToolResults(results) = &conversation.messages()[2] else { panic!("no results") };
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|it| it.is_error && it.content.to_text() == "cancelled"));
    conversation.push_user("again").unwrap();
}

#[test]
fn of_more_messages_than_are_kept_the_oldest_exchanges_go() {
    let mut conversation = Conversation::new();
    for round in 0..MAX_MESSAGES / 2 {
        conversation.push_user(format!("{round}")).unwrap();
        conversation.push_assistant(AssistantMessage::from_text("yes")).unwrap();
    }
    assert_eq!(conversation.messages().len(), MAX_MESSAGES);
    conversation.push_user("one more").unwrap();
    assert_eq!(conversation.messages().len(), MAX_MESSAGES - 1);
    assert_eq!(conversation.messages()[0], Message::User("1".into()));
}

#[test]
fn of_more_bytes_than_are_kept_the_oldest_exchanges_go() {
    let mut conversation = Conversation::new();
    conversation.push_user("1").unwrap();
    conversation.push_assistant(AssistantMessage { parts: vec![call_part("a")] }).unwrap();
    conversation
        .push_tool_results(vec![ToolResult {
            content: "y".repeat(MAX_BYTES / 2).into(),
            ..tool_result("a")
        }])
        .unwrap();
    let total_bytes: usize = conversation.messages().iter().map(Message::byte_size).sum();
    let rest = "x".repeat(MAX_BYTES - total_bytes);
    conversation.push_user(rest.as_str()).unwrap();
    assert_eq!(conversation.messages().len(), 4, "at the limit");
    conversation.push_assistant(AssistantMessage::from_text("z")).unwrap();
    assert_eq!(
        conversation.messages(),
        [Message::User(rest.into()), Message::Assistant(AssistantMessage::from_text("z").into())]
    );
    // The call was evicted together with its id.
    conversation.push_assistant(AssistantMessage { parts: vec![call_part("a")] }).unwrap();
    assert_eq!(pending_ids(&conversation), ["a"]);
}

#[test]
fn of_an_exchange_of_more_bytes_than_are_kept_the_newest_steps_stay_behind_the_question() {
    let mut conversation = Conversation::new();
    conversation.push_user("?").unwrap();
    for id in ["a", "b", "c"] {
        conversation.push_assistant(AssistantMessage { parts: vec![call_part(id)] }).unwrap();
        assert_eq!(pending_ids(&conversation), [id]);
        conversation
            .push_tool_results(vec![ToolResult {
                content: "y".repeat(MAX_BYTES / 2 - 256).into(),
                ..tool_result(id)
            }])
            .unwrap();
    }
    let remaining_ids: Vec<_> = conversation.messages()[1..].iter().flat_map(call_ids).collect();
    assert_eq!(conversation.messages()[0], Message::User("?".into()));
    assert_eq!(remaining_ids, ["b", "b", "c", "c"]);
    // The newest iteration remains, whatever its length.
    conversation.push_assistant(AssistantMessage { parts: vec![call_part("d")] }).unwrap();
    conversation
        .push_tool_results(vec![ToolResult {
            content: "y".repeat(MAX_BYTES).into(),
            ..tool_result("d")
        }])
        .unwrap();
    assert_eq!(conversation.messages().len(), 3);
    assert!(matches!(&conversation.messages()[2], Message::ToolResults(it) if it[0].id == "d"));
}

#[test]
fn an_answer_that_went_on_after_a_pause_stays_or_goes_as_one() {
    let mut conversation = Conversation::new();
    conversation.push_user("?").unwrap();
    for id in ["a", "b"] {
        conversation
            .push_assistant(AssistantMessage::from_text(format!(
                "pause of {id} {}",
                "x".repeat(MAX_BYTES / 4)
            )))
            .unwrap();
        conversation.push_assistant(AssistantMessage { parts: vec![call_part(id)] }).unwrap();
        conversation
            .push_tool_results(vec![ToolResult {
                content: "y".repeat(MAX_BYTES / 4).into(),
                ..tool_result(id)
            }])
            .unwrap();
    }
    let is_pause = |message: &Message| match message {
        Message::Assistant(assistant) => assistant.visible_text().starts_with("pause of b"),
        Message::User(_) | Message::ToolResults(_) => false,
    };
    assert_eq!(conversation.messages().len(), 4);
    assert!(is_pause(&conversation.messages()[1]));
    assert_eq!(
        conversation.messages()[1..].iter().flat_map(call_ids).collect::<Vec<_>>(),
        ["b", "b"]
    );
    assert_eq!(
        view(conversation.messages(), 0),
        conversation.messages(),
        "the newest iteration is whole"
    );
}

#[test]
fn what_is_kept_of_an_answer_counts_its_parts_and_the_name_of_its_model() {
    let part_of = |model: &str| {
        let json = serde_json::value::to_raw_value(&1).unwrap();
        let native = ProviderBlock { api: ProviderApi::Anthropic, model: model.to_owned(), json };
        ContentPart { content: PartContent::Other, provider_block: Some(native) }
    };
    let bytes = |model| {
        Message::Assistant(AssistantMessage { parts: vec![part_of(model); 10] }.into()).byte_size()
    };
    assert_eq!(bytes("model") - bytes(""), 50);
    assert_eq!(bytes(""), 10 * (size_of::<ContentPart>() + 1));
}

#[test]
fn a_message_of_more_bytes_than_are_kept_is_refused_and_says_so() {
    let mut conversation = Conversation::new();
    conversation.push_user("x".repeat(MAX_BYTES)).unwrap();
    let error = conversation.push_user("x".repeat(MAX_BYTES + 1)).unwrap_err();
    assert_eq!(error, ConversationError::MessageTooLong { bytes: MAX_BYTES + 1 });
    assert_eq!(conversation.messages().len(), 1);
}

/// Proves: P7
#[test]
fn what_is_too_long_loses_its_oldest_exchanges_and_no_call_its_result() {
    let mut conversation = Conversation::new();
    for round in 0..10 {
        conversation.push_user(format!("question {round} {}", "x".repeat(400))).unwrap();
        conversation.push_assistant(AssistantMessage { parts: vec![call_part("")] }).unwrap();
        let id = pending_ids(&conversation).remove(0);
        conversation.push_tool_results(vec![tool_result(&id)]).unwrap();
        conversation
            .push_assistant(AssistantMessage::from_text(format!("answer {round}")))
            .unwrap();
    }
    conversation.push_user("last").unwrap();
    for max_tokens in [0, 1, 50, 200, 400, 1000, 5000] {
        let fitting = view(conversation.messages(), max_tokens);
        assert_eq!(fitting.last(), Some(&Message::User("last".into())));
        assert!(matches!(fitting[0], Message::User(_)));
        for (at, message) in fitting.iter().enumerate() {
            let calls = matches!(message, Message::Assistant(it) if it.calls().next().is_some());
            let has_results = matches!(fitting.get(at + 1), Some(Message::ToolResults(_)));
            assert_eq!(calls, has_results, "at {at} of {max_tokens}");
        }
        let estimate =
            |message: &Message| estimate_message_tokens(message, ContentSupport::default());
        // The note about the omitted messages does not count.
        let tokens: usize = fitting[1..].iter().map(estimate).sum();
        assert!(fitting.len() <= 2 || tokens <= max_tokens, "{tokens} of {max_tokens}");
    }
    assert_eq!(view(conversation.messages(), 100_000), conversation.messages());
    assert_eq!(view(conversation.messages(), 0).len(), 2);
}

#[test]
fn of_a_long_last_exchange_the_newest_steps_stay() {
    let mut conversation = Conversation::new();
    conversation.push_user("question").unwrap();
    for _ in 0..20 {
        conversation.push_assistant(AssistantMessage { parts: vec![call_part("")] }).unwrap();
        let id = pending_ids(&conversation).remove(0);
        let long = ToolResult { content: "y".repeat(400).into(), ..tool_result(&id) };
        conversation.push_tool_results(vec![long]).unwrap();
    }
    let fitting = view(conversation.messages(), 500);
    assert_eq!(fitting[1], conversation.messages()[0]);
    assert_eq!(
        fitting[2..],
        conversation.messages()[conversation.messages().len() - fitting.len() + 2..]
    );
    assert!((6..=10).contains(&fitting.len()), "{}", fitting.len());
    assert_eq!(view(conversation.messages(), 0).len(), 4);
}

/// A conversation of this many exchanges with one call each.
fn long_conversation(exchanges: usize) -> Conversation {
    let mut conversation = Conversation::new();
    for _ in 0..exchanges {
        conversation.push_user("x".repeat(4000)).unwrap();
        conversation
            .push_assistant(AssistantMessage {
                parts: vec![call_part(""), ContentPart::new(PartContent::Text("y".repeat(4000)))],
            })
            .unwrap();
        let id = pending_ids(&conversation).remove(0);
        conversation
            .push_tool_results(vec![ToolResult {
                content: "z".repeat(4000).into(),
                ..tool_result(&id)
            }])
            .unwrap();
        conversation.push_assistant(AssistantMessage::from_text("w".repeat(4000))).unwrap();
    }
    conversation
}

#[test]
fn the_history_of_a_request_takes_time_in_proportion_to_its_messages() {
    const FACTOR: u32 = 8;
    let time_to_trim = |conversation: &Conversation| {
        let started = tokio::time::Instant::now();
        // The whole history is searched, and only the last exchange remains.
        let history = view(conversation.messages(), 5000);
        assert_eq!(std::hint::black_box(history).len(), 5);
        started.elapsed()
    };
    let (short, long) = (long_conversation(50), long_conversation(50 * FACTOR as usize));
    // The fastest of several rounds counts, so that a pause of the machine does not.
    let (mut of_short, mut of_long) = (Duration::MAX, Duration::MAX);
    for _ in 0..10 {
        of_long = of_long.min(time_to_trim(&long));
        of_short = of_short.min(time_to_trim(&short));
    }
    // Work in proportion to the square of the messages would take 64 times as long.
    assert!(of_long < of_short * FACTOR * 3, "{of_short:?} and {of_long:?}");
}
