//! Tests of tool results and notification parameters.

use std::borrow::Cow;

use super::raw;
use crate::id::RequestId;
use crate::view::{
    CancelledNotification, ContentBlock, LoggingMessageNotification, MAX_CONTENT_BLOCKS,
    ProgressNotification, ToolResult, result_text,
};

#[test]
fn every_block_of_a_result_is_kept_as_it_was_sent() {
    let blocks = [
        r#"{"type":"text","text":"a\nb","annotations":{"audience":["martian"]}}"#,
        r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#,
        r#"{"type":"audio","data":"AA==","mimeType":"audio/wav"}"#,
        r#"{"type":"resource","resource":{"uri":"x:","text":""}}"#,
        r#"{"type":"resource_link","uri":"x:","name":"x"}"#,
        r#"{"type":"hologram","z":1e999}"#,
        r#"{"type":"text","text":5}"#,
    ];
    let json =
        format!(r#"{{"content":[{}],"isError":true,"structuredContent":[1]}}"#, blocks.join(","));
    let json = raw(&json);
    let result = ToolResult::from_raw(&json).unwrap();
    assert!(result.is_error);
    assert_eq!(result.structured_content.unwrap().get(), "[1]");
    let raw_blocks: Vec<_> = result.content.iter().map(|block| block.raw().get()).collect();
    assert_eq!(raw_blocks, blocks);
    let kinds: Vec<_> = result
        .content
        .iter()
        .map(|block| match block {
            ContentBlock::Text { text, .. } => text,
            ContentBlock::Image { .. } => "image",
            ContentBlock::Audio { .. } => "audio",
            ContentBlock::Resource { .. } => "resource",
            ContentBlock::ResourceLink { .. } => "link",
            ContentBlock::Unknown { type_, .. } => type_,
        })
        .collect();
    assert_eq!(kinds, ["a\nb", "image", "audio", "resource", "link", "hologram", "text"]);
}

#[test]
fn a_result_may_have_no_content() {
    let json = raw(r#"{"structuredContent":{"a":1}}"#);
    let result = ToolResult::from_raw(&json).unwrap();
    assert!(result.content.is_empty() && !result.is_error);
    assert_eq!(result.structured_content.unwrap().get(), r#"{"a":1}"#);
}

/// Proves: FR7.5
#[test]
fn a_block_that_is_no_block_is_an_error_that_says_where() {
    let pointer = |json: &str| ToolResult::from_raw(&raw(json)).unwrap_err().pointer;
    assert_eq!(pointer(r#"{"content":"x"}"#), "/content");
    assert_eq!(pointer(r#"{"content":[{"type":"x"},5]}"#), "/content/1");
    assert_eq!(pointer(r#"{"content":[{"text":"x"}]}"#), "/content/0/type");
}

#[test]
fn blocks_at_the_limit_are_viewed_and_one_past_it_is_an_error() {
    let read = |blocks: usize| {
        let json = format!(r#"{{"content":[{}]}}"#, vec![r#"{"type":"x"}"#; blocks].join(","));
        ToolResult::from_raw(&raw(&json)).map(|result| result.content.len())
    };
    assert_eq!(read(MAX_CONTENT_BLOCKS), Ok(MAX_CONTENT_BLOCKS));
    assert_eq!(read(MAX_CONTENT_BLOCKS + 1).unwrap_err().pointer, "/content/10000");
}

#[test]
fn the_text_of_a_result_is_that_of_its_text_blocks_and_is_copied_only_if_it_must_be() {
    let text = |json: &str| result_text(&raw(json)).into_owned();
    let one = raw(r#"{"isError":false,"content":[{"text":"one","type":"text"}],"text":"no"}"#);
    assert!(matches!(result_text(&one), Cow::Borrowed("one")));
    let blocks = r#"{"content":[{"type":"text","text":"a\n"},{"type":"image","text":"no"},{"type":"text"},
        {"type":"text","text":5},{"type":"te\u0078t","text":"b"}]}"#;
    assert_eq!(text(blocks), "a\n\nb");
    for none in ["{}", "[]", r#"{"content":[]}"#, r#"{"content":[5]}"#, r#"{"content":null}"#] {
        assert_eq!(text(none), "", "{none}");
    }
}

#[test]
fn progress_is_read_with_either_kind_of_token() {
    let read = |json: &str| ProgressNotification::from_raw(&raw(json));
    let full = read(r#"{"progressToken":3,"progress":0.5,"total":1,"message":"half"}"#).unwrap();
    let expected = ProgressNotification {
        progress_token: RequestId::Integer(3),
        progress: 0.5,
        total: Some(1.0),
        message: Some("half".to_owned()),
    };
    assert_eq!(full, expected);
    let text = read(r#"{"progressToken":"3","progress":1}"#).unwrap();
    assert_eq!((text.progress_token.as_client_id(), text.total), (Some(3), None));
}

/// Proves: FR7.5
#[test]
fn progress_that_is_no_finite_number_is_an_error() {
    for progress in ["1e999", "-1e999", "\"1\"", "null"] {
        let json = format!(r#"{{"progressToken":3,"progress":{progress}}}"#);
        let error = ProgressNotification::from_raw(&raw(&json)).unwrap_err();
        assert_eq!(error.pointer, "/progress", "{json}");
    }
    let error = ProgressNotification::from_raw(&raw(r#"{"progress":1}"#)).unwrap_err();
    assert_eq!(error.pointer, "/progressToken");
}

#[test]
fn cancellations_and_log_messages_are_read() {
    let cancelled =
        CancelledNotification::from_raw(&raw(r#"{"requestId":"a","reason":"late"}"#)).unwrap();
    assert_eq!(cancelled.request_id, RequestId::String("a".into()));
    assert_eq!(cancelled.reason.as_deref(), Some("late"));
    assert!(CancelledNotification::from_raw(&raw(r#"{"requestId":null}"#)).is_err());
    let log = LoggingMessageNotification::from_raw(&raw(
        r#"{"level":"info","logger":"db","data":{"a":1e999}}"#,
    ))
    .unwrap();
    assert_eq!((log.level.as_str(), log.logger.as_deref()), ("info", Some("db")));
    assert_eq!(log.data.unwrap().get(), r#"{"a":1e999}"#);
    assert!(LoggingMessageNotification::from_raw(&raw(r#"{"data":1}"#)).is_err());
}
