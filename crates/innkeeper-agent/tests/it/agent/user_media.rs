//! Images and other media in the messages of a user.

use futures_util::StreamExt as _;
use innkeeper_agent::agent::Agent;
use innkeeper_agent::content::{Content, ContentBlock, MediaContent};
use innkeeper_agent::conversation::Message;

use super::{native_harness, text_reply};

fn question() -> Content {
    let mime_type = Some("image/png".to_owned());
    let image = ContentBlock::Image(MediaContent { mime_type, data: "aGVsbG8=".into() });
    vec!["What is this?".into(), image].into()
}

/// Sends a message in one of the three ways of an agent.
async fn send(agent: &Agent, way: usize, message: impl Into<Content>) {
    match way {
        0 => drop(agent.run(message).await),
        1 => drop(agent.run_streaming(message, |_| {}).await),
        _ => agent.stream(message).for_each(|_| async {}).await,
    }
}

#[tokio::test]
async fn an_image_of_the_user_reaches_the_model_and_stays_in_the_conversation() {
    for way in 0..3 {
        let test_env = native_harness([text_reply("A greeting."), text_reply("Four.")]);
        send(&test_env.agent, way, question()).await;
        send(&test_env.agent, way, String::from("2 + 2?")).await;
        let requests = test_env.model.requests();
        assert_eq!(requests[0].messages, [Message::User(question())], "{way}");
        let messages = &requests[1].messages;
        assert_eq!(messages[0], Message::User(question()), "{way}");
        assert_eq!(messages[2], Message::User("2 + 2?".into()), "{way}");
        let conversation = test_env.agent.conversation();
        assert_eq!(conversation.messages()[0], Message::User(question()), "{way}");
    }
}
