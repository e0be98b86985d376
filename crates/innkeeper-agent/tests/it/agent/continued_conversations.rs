//! Agents that continue a conversation of an application.

use std::sync::Arc;

use innkeeper_agent::agent::Agent;
use innkeeper_agent::conversation::{Conversation, Message};
use innkeeper_agent::provider::{Response, ScriptedProvider};

use super::{call_reply, native_harness, text_reply};

/// Returns an agent that continues a conversation, and its model.
fn agent_after(conversation: Conversation) -> (Agent, Arc<ScriptedProvider>) {
    let test_env = native_harness([text_reply("Third."), text_reply("Fourth.")]);
    (test_env.agent.with_conversation(conversation), test_env.model)
}

#[tokio::test]
async fn an_agent_continues_a_stored_conversation() {
    let first = native_harness([
        call_reply("fs.read", r#"{"path": "a"}"#),
        text_reply("First."),
        text_reply("Second."),
    ]);
    for message in ["one", "two"] {
        assert!(first.agent.run(message).await.is_success());
    }
    let stored = serde_json::to_string(&first.agent.conversation()).unwrap();
    let (agent, model) = agent_after(serde_json::from_str(&stored).unwrap());
    assert_eq!(agent.conversation(), first.agent.conversation());
    assert!(agent.run("three").await.is_success());

    let messages = &model.requests()[0].messages;
    let stored_messages = first.agent.conversation().messages().to_vec();
    assert_eq!(messages[..messages.len() - 1], stored_messages);
    assert_eq!(messages.last(), Some(&Message::User("three".into())));
    assert_eq!(agent.conversation().messages().len(), stored_messages.len() + 2);
}

#[tokio::test]
async fn a_pending_call_of_a_continued_conversation_gets_an_error_result() {
    let mut conversation = Conversation::new();
    conversation.push_user("one").unwrap();
    let call = Response::from_tool_calls([("fs.read", r#"{"path": "a"}"#)]);
    conversation.push_assistant(call.message).unwrap();
    let (agent, model) = agent_after(conversation);
    assert_eq!(agent.conversation().pending_calls().count(), 0);
    assert!(agent.run("two").await.is_success());
    let Some(Message::ToolResults(results)) = model.requests()[0].messages.get(2).cloned() else {
        panic!("no results")
    };
    assert!(results[0].is_error && results[0].name == "fs.read", "{results:?}");
}

#[tokio::test]
async fn earlier_clones_keep_their_conversation_and_their_statistics() {
    let call = || call_reply("fs.read", r#"{"path": "a"}"#);
    let agent = native_harness([call(), text_reply("First."), call(), text_reply("Second.")]).agent;
    assert!(agent.run("one").await.is_success());
    let other = agent.clone().with_conversation(Conversation::new());
    assert_eq!(other.statistics(), agent.statistics());
    assert!(other.run("two").await.is_success());
    assert_eq!(agent.conversation().messages()[0], Message::User("one".into()));
    assert_eq!(other.conversation().messages()[0], Message::User("two".into()));
    assert_ne!(other.statistics(), agent.statistics());
}
