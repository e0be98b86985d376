//! An agent: a message with an image, and a stored conversation.

use std::sync::Arc;

use innkeeper::content::{Content, ContentBlock, MediaContent};
use innkeeper::conversation::{Conversation, Message};
use innkeeper::provider::{Response, ScriptedProvider};
use innkeeper::{Agent, AgentSettings, Host};

use crate::server::app_server;

/// Returns an agent with this reply of the model, the model, and the host of the agent.
async fn start_agent(reply: &str) -> (Agent, Arc<ScriptedProvider>, Host) {
    let host = app_server().0.start().await.unwrap();
    let model = Arc::new(ScriptedProvider::new([Ok(Response::from_text(reply))]));
    let agent = Agent::new(model.clone(), Arc::new(host.clone()), AgentSettings::default());
    (agent, model, host)
}

fn question() -> Content {
    let mime_type = Some("image/png".to_owned());
    let image = ContentBlock::Image(MediaContent { mime_type, data: "aGVsbG8=".into() });
    vec!["What is this?".into(), image].into()
}

#[tokio::test]
async fn an_image_reaches_the_model_and_the_next_start_of_the_application() {
    let (agent, model, host) = start_agent("A greeting.").await;
    assert_eq!(agent.run(question()).await.text, "A greeting.");
    assert_eq!(model.requests()[0].messages, [Message::User(question())]);
    let stored = serde_json::to_string(&agent.conversation()).unwrap();
    host.shutdown().await;

    let (agent, model, host) = start_agent("Hello.").await;
    let conversation: Conversation = serde_json::from_str(&stored).unwrap();
    let agent = agent.with_conversation(conversation);
    assert_eq!(agent.run("Which one?").await.text, "Hello.");
    let messages = &model.requests()[0].messages;
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert_eq!(messages[0], Message::User(question()));
    host.shutdown().await;
}
