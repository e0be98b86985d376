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

/// Rules with room for six images of 16 bytes in a request.
const SMALL: MediaRules = MediaRules {
    image_types: &["image/png"],
    audio_types: &[],
    document_types: &[],
    max_image_bytes: 16,
    max_audio_bytes: 0,
    max_document_bytes: 0,
    max_request_bytes: 6 * 16,
    media_in_failed_results: true,
};

fn images(count: usize) -> Vec<ContentBlock> {
    vec![image("a".repeat(16)); count]
}

#[test]
fn of_more_media_than_fit_a_request_the_oldest_are_text() {
    for (count, text_count) in [(6, 0), (7, 1), (8, 2)] {
        let messages = [Message::User(images(count).into())];
        let lowered = lower_by_rules(&SMALL, IMAGES, &messages).unwrap();
        let content = message_contents(&lowered[0])[0];
        let are_media = content.blocks().iter().map(|block| block.media().is_some());
        let expected = (0..count).map(|at| at >= text_count);
        assert!(are_media.eq(expected), "{content:?}");
        let lines = content.to_text().matches("not sent: newer content fills the request").count();
        assert_eq!(lines, text_count);
    }
}

#[test]
fn one_medium_past_the_limit_of_a_request_displaces_the_oldest_of_all_messages() {
    // The API rejects both, so neither counts.
    let rejected = [
        image("not Base64".to_owned()),
        ContentBlock::Audio(MediaContent { mime_type: None, data: "a".repeat(16).into() }),
    ];
    let (id, name) = ("c".to_owned(), "t".to_owned());
    let content = [&images(3)[..], &rejected].concat().into();
    let results = [ToolResult { id, name, content, is_error: false }];
    let count_sent = |newest: ContentBlock| {
        let messages = [
            Message::User(images(3).into()),
            Message::ToolResults(results.clone().into()),
            Message::User(newest.into()),
        ];
        let lowered = lower_by_rules(&SMALL, IMAGES, &messages).unwrap();
        let contents = lowered.iter().map(|message| message_contents(message)[0].media().count());
        contents.collect::<Vec<_>>()
    };
    assert_eq!(count_sent("And now?".into()), [3, 3, 0]);
    assert_eq!(count_sent(image("aGk=".to_owned())), [2, 3, 1]);
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
