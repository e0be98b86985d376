//! Tests of the tokens that media count.

use super::*;
use crate::content::{ContentBlock, EmbeddedResource, MediaContent, ResourceContents};
use crate::conversation::{AssistantMessage, ContentPart, ToolCall, ToolResult, choose_cut};

const TEXT: ContentSupport =
    ContentSupport { images: false, audio: false, documents: false, media_in_tool_results: false };

fn media_content(bytes: usize) -> MediaContent {
    MediaContent { mime_type: None, data: "a".repeat(bytes).into() }
}

fn image(bytes: usize) -> ContentBlock {
    ContentBlock::Image(media_content(bytes))
}

fn audio(bytes: usize) -> ContentBlock {
    ContentBlock::Audio(media_content(bytes))
}

fn document(bytes: usize) -> ContentBlock {
    ContentBlock::Resource(EmbeddedResource {
        uri: String::new(),
        mime_type: Some("application/pdf".to_owned()),
        contents: ResourceContents::Blob("a".repeat(bytes).into()),
    })
}

/// Returns the tokens that a block counts for a model beyond its line of text.
fn media_tokens(block: ContentBlock, support: ContentSupport) -> usize {
    let content = Content::from(block);
    estimate_content_tokens(&content, support) - estimate_tokens(&content.to_text())
}

#[test]
fn media_that_the_model_takes_count_by_their_kind() {
    let images = ContentSupport { images: true, ..TEXT };
    for (bytes, tokens) in [(4, 1), (6396, 1599), (6400, 1600), (6404, 1600), (1 << 20, 1600)] {
        assert_eq!(media_tokens(image(bytes), images), tokens, "{bytes}");
    }
    let audio_only = ContentSupport { audio: true, ..TEXT };
    for (bytes, tokens) in [(125, 1), (126, 2), (125_000, 1000)] {
        assert_eq!(media_tokens(audio(bytes), audio_only), tokens, "{bytes}");
    }
    let documents = ContentSupport { documents: true, ..TEXT };
    for (bytes, tokens) in [(4, 1), (5, 2), (1 << 20, 1 << 18)] {
        assert_eq!(media_tokens(document(bytes), documents), tokens, "{bytes}");
    }
}

#[test]
fn media_that_the_model_does_not_take_count_as_their_line() {
    let images = ContentSupport { images: true, ..TEXT };
    for (block, support) in [(image(4000), TEXT), (audio(4000), images), (document(4000), images)] {
        assert_eq!(media_tokens(block, support), 0);
    }
}

#[test]
fn an_exchange_with_an_image_stays_if_the_tokens_of_the_image_fit() {
    let results: [ToolResult; 1] = [ToolResult {
        id: String::new(),
        name: String::new(),
        content: image(4000).into(),
        is_error: false,
    }];
    let answer = |text: &str| Message::Assistant(AssistantMessage::from_text(text).into());
    let messages = [
        Message::User(vec!["What is this?".into(), image(8000)].into()),
        answer("I look."),
        Message::ToolResults(results.into()),
        answer("A cat."),
        Message::User("And now?".into()),
    ];
    for (support, media) in [(ContentSupport { images: true, ..TEXT }, 1600 + 1000), (TEXT, 0)] {
        let max_tokens: usize =
            messages.iter().map(|message| estimate_message_tokens(message, support)).sum();
        assert!((media..media + 100).contains(&max_tokens), "{max_tokens}");
        let estimate = |message: &Message| estimate_message_tokens(message, support);
        let last = estimate(&messages[4]);
        assert_eq!(choose_cut(&messages, 0, max_tokens - 1, estimate), Some(4));
        assert_eq!(choose_cut(&messages, 0, last, estimate), Some(4));
    }
}

#[test]
fn a_call_counts_its_name_and_its_arguments() {
    let tokens = |name: &str, arguments: &str| {
        let (name, arguments) = (name.to_owned(), arguments.to_owned());
        let call = ToolCall { id: "call".to_owned(), name, arguments, is_cut: false };
        let parts = vec![ContentPart::new(PartContent::ToolCall(call))];
        let message = Message::Assistant(AssistantMessage { parts }.into());
        estimate_message_tokens(&message, TEXT) - MESSAGE_OVERHEAD_TOKENS
    };
    assert_eq!(tokens(&"n".repeat(12), &"a".repeat(400)), 3 + 100);
    assert_eq!(tokens("", "{}"), 1);
}
