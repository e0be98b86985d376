//! Tests of the messages that a request leaves out.

use super::*;
use crate::conversation::{
    AssistantMessage, ContentPart, Conversation, PartContent, ToolCall, ToolResult,
};

fn call(id: &str) -> AssistantMessage {
    let call = ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: "{}".to_owned(),
        is_cut: false,
    };
    AssistantMessage { parts: vec![ContentPart::new(PartContent::ToolCall(call))] }
}

fn result(id: &str) -> Vec<ToolResult> {
    let (id, name) = (id.to_owned(), "read".to_owned());
    vec![ToolResult { id, name, content: "text".into(), is_error: false }]
}

/// Two exchanges: the first has an iteration with a call, the last two.
fn conversation() -> Conversation {
    let mut conversation = Conversation::new();
    conversation.push_user("first").unwrap();
    conversation.push_assistant(call("a")).unwrap();
    conversation.push_tool_results(result("a")).unwrap();
    conversation.push_assistant(AssistantMessage::from_text("answer")).unwrap();
    conversation.push_user("second").unwrap();
    for id in ["b", "c"] {
        conversation.push_assistant(call(id)).unwrap();
        conversation.push_tool_results(result(id)).unwrap();
    }
    conversation
}

fn omitted(messages: usize) -> OmittedHistory {
    OmittedHistory { messages, ..OmittedHistory::default() }
}

#[test]
fn a_cut_is_before_a_user_message_or_before_a_later_iteration_of_the_last_exchange() {
    let conversation = conversation();
    let messages = conversation.messages();
    assert_eq!(cuts(messages, 0).collect::<Vec<_>>(), [4, 7]);
    assert_eq!(cuts(messages, 4).collect::<Vec<_>>(), [7]);
    assert_eq!(cuts(messages, 7).count(), 0);
    // Each message counts one token.
    for (max_tokens, cut) in [(8, 4), (5, 4), (4, 7), (3, 7), (0, 7)] {
        assert_eq!(choose_cut(messages, 0, max_tokens, |_| 1), Some(cut), "{max_tokens}");
    }
    assert_eq!(choose_cut(messages, 7, 0, |_| 1), None);
}

#[test]
fn the_last_user_message_stays_when_its_first_iterations_are_left_out() {
    let conversation = conversation();
    let messages = conversation.messages();
    let view = visible_messages(messages, &omitted(7));
    assert!(matches!(&view[0], Message::User(note) if note.to_text().contains("omitted")));
    assert_eq!(view[1], messages[4]);
    assert_eq!(view[2..], messages[7..]);
    assert_eq!(visible_messages(messages, &omitted(0)), messages);
    assert_eq!(visible_messages(messages, &omitted(4))[1..], messages[4..]);
}

#[test]
fn a_stored_conversation_keeps_its_summary_and_rejects_one_between_a_call_and_its_result() {
    let mut conversation = conversation();
    let summary = Some("The user said first.".to_owned());
    conversation.set_omitted_history(OmittedHistory { summary, ..omitted(4) });
    let stored = serde_json::to_string(&conversation).unwrap();
    let read: Conversation = serde_json::from_str(&stored).unwrap();
    assert_eq!(read.omitted_history(), conversation.omitted_history());
    assert_eq!(read, conversation);
    for wrong in [2, 6, 8, 9, 1000] {
        let stored = stored
            .replace(r#""omitted":{"messages":4"#, &format!(r#""omitted":{{"messages":{wrong}"#));
        let error = serde_json::from_str::<Conversation>(&stored).unwrap_err().to_string();
        assert!(error.contains(&format!("`omitted.messages` is {wrong}")), "{error}");
    }
}

#[test]
fn messages_that_the_conversation_evicts_are_no_longer_counted_as_left_out() {
    let full = OmittedHistory { summary: Some("short".to_owned()), ..omitted(4) };
    for (evicted, messages, has_gap) in
        [(0..3, 1, false), (0..4, 0, false), (0..6, 0, true), (2..3, 3, false), (5..7, 4, true)]
    {
        let mut omitted = full.clone();
        omitted.evict(&evicted);
        assert_eq!((omitted.messages, omitted.has_gap), (messages, has_gap), "{evicted:?}");
    }
    let mut without_summary = omitted(4);
    without_summary.evict(&(0..6));
    assert_eq!(without_summary, omitted(0));
    let evicted = OmittedHistory { summary: Some("short".to_owned()), ..omitted(0) };
    let view = visible_messages(conversation().messages(), &evicted);
    assert!(matches!(&view[0], Message::User(note) if note.to_text().contains("short")));
}
