//! Tests of the walk through the strings of JSON text.

use serde_json::{Value, json};

use super::*;

fn read(value: &Value) -> Vec<(String, String)> {
    read_json(&value.to_string())
}

fn read_json(json: &str) -> Vec<(String, String)> {
    let mut nodes = Vec::new();
    let flow = walk_text_nodes(json, SkippedMembers::NotModelVisible, |node| {
        let (steps, text) = match node {
            ScannedNode::Text(node) => {
                let name = if node.is_name { "name " } else { "" };
                (node.steps, format!("{name}{}", node.text))
            }
            ScannedNode::DuplicateKey(steps) => (steps, "duplicate".to_owned()),
            ScannedNode::NotScanned(steps) => (steps, "not scanned".to_owned()),
        };
        let segments: Vec<String> = steps
            .iter()
            .map(|segment| match segment {
                PathSegment::Name(name) => name.to_string(),
                PathSegment::Index(at) => at.to_string(),
            })
            .collect();
        nodes.push((segments.join(" "), text));
        ControlFlow::Continue(())
    });
    assert_eq!(flow, ControlFlow::Continue(()));
    nodes
}

#[test]
fn every_text_is_read_with_the_steps_to_it_and_every_name_with_those_to_its_object() {
    let value = json!({"a/b": ["one", {"deep": "two"}], "$ref": "not said"});
    let node = |segments: &str, text: &str| (segments.to_owned(), text.to_owned());
    let expected = [
        node("", "name a/b"),
        node("a/b 0", "one"),
        node("a/b 1", "name deep"),
        node("a/b 1 deep", "two"),
    ];
    assert_eq!(read(&value), expected);
    let json = value.to_string();
    let enough = walk_text_nodes(&json, SkippedMembers::None, |_| ControlFlow::Break(()));
    assert_eq!(enough, ControlFlow::Break(()));
}

#[test]
fn the_bytes_of_pictures_recordings_and_files_are_not_read_and_every_text_is() {
    let contains = |value: &Value, text: &str| read(value).iter().any(|(_, read)| read == text);
    let picture = |data: &str| json!({"type": "image", "mimeType": "image/png", "data": data});
    let file = |kind: &str, data: &str| json!({"uri": "x:y", "mimeType": kind, "blob": data});
    assert!(!contains(&picture("AAAA"), "AAAA"));
    assert!(!contains(&file("application/pdf", "AAAA"), "AAAA"));
    assert!(contains(&picture("not base64"), "not base64"));
    assert!(contains(&file("application/pdf", "not base64"), "not base64"));
    for kind in ["text/plain", "Application/JSON", "image/svg+xml"] {
        assert!(contains(&file(kind, "AAAA"), "AAAA"), "{kind}");
    }
    assert!(contains(&json!({"type": "text", "mimeType": "a/b", "data": "AAAA"}), "AAAA"));
    assert!(contains(&json!({"mimeType": "a/b", "data": "AAAA"}), "AAAA"));
}

/// Attack: data | a text is longer than the limit, in one string or in many | the walk reports the
/// first text that does not fit, and reads the beginning and the end | Complete checks
#[test]
fn a_text_that_fits_is_read_once_and_a_longer_one_is_reported() {
    let at_limit = "a".repeat(MAX_FRONT_BYTES);
    assert_eq!(read(&json!(at_limit)), [(String::new(), at_limit.clone())]);
    let found = read(&json!({"a": at_limit, "b": "b"}));
    assert_eq!(found.iter().find(|(_, text)| text == "not scanned").unwrap().0, "a");
    let many = json!({"a": [], "list": vec!["aa"; MAX_FRONT_BYTES / MIN_TEXT_COST]});
    let found = read(&many);
    let missing: Vec<_> = found.iter().filter(|(_, text)| text == "not scanned").collect();
    assert_eq!(missing.len(), 1);
    assert!(missing[0].0.starts_with("list "));
    let more = format!("begin{}end", "ä".repeat(MAX_FRONT_BYTES));
    let read = read(&json!(more));
    assert_eq!(read[0].1, "not scanned");
    assert!(read[1].1.starts_with("begin") && read[1].1.len() <= MAX_FRONT_BYTES);
    assert!(read[2].1.ends_with("end") && read[2].1.len() <= MAX_BACK_BYTES);
    let texts: Vec<_> = front_and_back(&more)
        .map(|node| match node {
            ScannedNode::Text(node) => node.text,
            ScannedNode::NotScanned(_) => "not scanned",
            ScannedNode::DuplicateKey(steps) => panic!("{steps:?}"),
        })
        .collect();
    assert!(
        texts[0] == "not scanned" && texts[1].starts_with("begin") && texts[2].ends_with("end")
    );
    assert!(TOO_LONG.contains(&format!("{} MiB", MAX_FRONT_BYTES >> 20)));
}

/// Attack: data | two members with one name, one of the names escaped | both texts are read, and
/// the duplicate is reported | Complete checks
#[test]
fn each_of_two_members_with_the_same_name_is_read_and_reported() {
    let node = |segments: &str, text: &str| (segments.to_owned(), text.to_owned());
    assert_eq!(
        read_json(r#"{"aa":["one"],"a\u0061":"two"}"#),
        [
            node("", "name aa"),
            node("aa 0", "one"),
            node("", "name aa"),
            node("aa", "two"),
            node("", "duplicate"),
        ]
    );
}

#[test]
fn data_of_an_object_with_a_duplicate_key_is_read() {
    for json in [
        r#"{"type":"image","data":"AAAA","type":"text"}"#,
        r#"{"type":"text","type":"image","data":"AAAA"}"#,
        r#"{"type":"image","data":"AAAA","data":"BBBB"}"#,
        r#"{"type":"image","data":"BBBB","\u0064ata":"AAAA"}"#,
        r#"{"mimeType":"a/b","blob":"AAAA","blob":"BBBB","blob":[]}"#,
    ] {
        assert!(read_json(json).iter().any(|(_, text)| text == "AAAA"), "{json}");
    }
}

/// Attack: data | a list follows 2 MiB of other text | the last text of the list is read | Complete
/// checks
#[test]
fn the_end_of_a_long_value_is_read_whatever_its_length() {
    let long = json!({"type": "x", "text": "x".repeat(2 << 20), "list": ["a", {"b": "the end"}]});
    let (path, text) = read(&long).pop().unwrap();
    assert_eq!((&*path, &*text), ("list 1 b", "the end"));
}

#[test]
fn a_list_of_tiny_texts_has_an_end_too() {
    let many = json!(vec!["ab"; MAX_FRONT_BYTES]);
    assert!(read(&many).len() <= (MAX_FRONT_BYTES + MAX_BACK_BYTES) / MIN_TEXT_COST + 2);
}
