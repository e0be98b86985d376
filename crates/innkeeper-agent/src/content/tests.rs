//! Tests of contents as text, segments and stored JSON.

use serde_json::value::RawValue;

use super::*;

fn block(json: &str) -> ContentBlock {
    let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
    ContentBlock::from_raw(&raw).unwrap()
}

#[test]
fn an_unknown_block_stays_byte_for_byte_through_storage() {
    let json = r#"{"type":"hologram",  "depth": 1.50, "id":123456789012345678901234567890}"#;
    let content = Content::from(block(json));
    let ContentBlock::Other(raw) = &content.blocks()[0] else { panic!("{content:?}") };
    assert_eq!(raw.get(), json);
    let stored = serde_json::to_string(&content).unwrap();
    assert_eq!(stored, format!(r#"[{{"other":{json}}}]"#));
    assert_eq!(serde_json::from_str::<Content>(&stored).unwrap(), content);
}

#[test]
fn segments_join_texts_and_keep_media_in_place() {
    let content = Content::from(vec![
        "a".into(),
        block(r#"{"type": "resource_link", "uri": "f:///a"}"#),
        block(r#"{"type": "image", "mimeType": "image/png", "data": "aGVsbG8="}"#),
        block(r#"{"type": "resource", "resource": {"uri": "u", "text": "b"}}"#),
    ]);
    let segments = content.segments();
    assert_eq!(segments[0], Segment::Text("a\n[resource at f:///a]".into()));
    let Segment::Media(media) = &segments[1] else { panic!("{segments:?}") };
    assert_eq!(media.to_data_url(), "data:image/png;base64,aGVsbG8=");
    assert_eq!(segments[2], Segment::Text("b".into()));
    assert_eq!(segments.len(), 3);
    assert_eq!(content.to_text(), "a\n[resource at f:///a]\n[image, image/png, 5 bytes]\nb");
    assert_eq!(content.text_without_media(), "a\n[resource at f:///a]\nb");
}

#[test]
fn the_data_of_a_resource_is_media_if_its_type_is() {
    let kind = |mime_type: &str| {
        let resource = format!(r#"{{"uri": "u", "mimeType": "{mime_type}", "blob": "aGk="}}"#);
        block(&format!(r#"{{"type": "resource", "resource": {resource}}}"#))
            .media()
            .map(|media| media.kind)
    };
    assert_eq!(kind("image/png"), Some(MediaKind::Image));
    assert_eq!(kind("audio/wav"), Some(MediaKind::Audio));
    assert_eq!(kind("application/pdf"), Some(MediaKind::Document));
    assert_eq!(kind("application/zip"), None);
}

#[test]
fn clones_of_a_content_share_its_blocks() {
    let content = Content::from("x".repeat(1000));
    assert!(std::ptr::eq(content.blocks(), content.clone().blocks()));
}

#[test]
fn a_text_of_each_type_of_string_is_one_block() {
    let expected = [ContentBlock::Text("a".into())];
    let text = "a".to_owned();
    assert_eq!(Content::from(&text).blocks(), expected);
    assert_eq!(Content::from(text).blocks(), expected);
    assert_eq!(Content::from("a").blocks(), expected);
    assert_eq!(Content::from(Arc::<str>::from("a")).blocks(), expected);
}
