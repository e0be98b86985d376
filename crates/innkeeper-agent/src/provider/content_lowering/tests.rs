//! Tests of the lowered content.

use super::*;

const IMAGES: ContentSupport =
    ContentSupport { images: true, audio: false, documents: false, media_in_tool_results: true };

fn image(data: String) -> ContentBlock {
    ContentBlock::Image(MediaContent { mime_type: Some("image/png".to_owned()), data: data.into() })
}

fn lower(api: ProviderApi, blocks: Vec<ContentBlock>) -> Content {
    let messages = [Message::User(blocks.into())];
    match lower_messages(api, IMAGES, &messages).unwrap().remove(0) {
        Message::User(content) => content,
        Message::Assistant(_) | Message::ToolResults(_) => panic!("not a user message"),
    }
}

#[test]
fn an_image_at_the_limit_is_sent_and_a_larger_one_is_text_that_says_so() {
    let limit = 5 << 20;
    let sent = lower(ProviderApi::Anthropic, vec![image("a".repeat(limit))]);
    assert!(sent.has_media());
    let text = lower(ProviderApi::Anthropic, vec![image("a".repeat(limit + 4))]);
    assert!(!text.has_media());
    assert_eq!(
        text.to_text(),
        "[image, image/png, 3932163 bytes, not sent: the limit of the provider is 5242880 bytes \
         of Base64]"
    );
}

#[test]
fn of_more_media_than_fit_a_request_the_oldest_are_text() {
    let part = 4 << 20;
    let blocks = |count| vec![image("a".repeat(part)); count];
    let all = lower(ProviderApi::Anthropic, blocks(6));
    assert_eq!(all.media().count(), 6);
    let newest = lower(ProviderApi::Anthropic, blocks(8));
    let are_media: Vec<_> = newest.blocks().iter().map(|block| block.media().is_some()).collect();
    assert_eq!(are_media, [false, false, true, true, true, true, true, true]);
    assert!(newest.to_text().contains("not sent: newer content fills the request"));
}

#[test]
fn media_of_a_tool_result_precede_the_next_user_message_if_a_result_cannot_contain_them() {
    let content = vec!["a".into(), image("aGk=".to_owned())].into();
    let (id, name) = ("c".to_owned(), "t".to_owned());
    let results = Message::ToolResults([ToolResult { id, name, content, is_error: false }].into());
    let messages = [results, Message::User("b".into())];
    let support = ContentSupport { media_in_tool_results: false, ..IMAGES };
    let lowered = lower_messages(ProviderApi::OpenAiChat, support, &messages).unwrap();
    let [Message::ToolResults(results), Message::User(user)] = lowered.as_slice() else {
        panic!("{lowered:?}")
    };
    assert_eq!(results[0].content.to_text(), "a\n[image, image/png, 2 bytes]");
    assert!(!results[0].content.has_media());
    let line = "From the result of `t` (call `c`):".into();
    assert_eq!(user.blocks(), [line, image("aGk=".to_owned()), "b".into()]);
}

#[test]
fn messages_without_media_are_not_copied() {
    let messages = [Message::User("a".into())];
    assert_eq!(lower_messages(ProviderApi::Ollama, IMAGES, &messages), None);
}
