//! Answers at a limit and one past it.

use crate::provider::codec::cuts::{MODEL, whole};
use crate::provider::codec::{ANSWER, LIST, PARTS, reader};
use crate::provider::{Class, Wire};

fn repeated(member: &str, element: &str, count: usize) -> String {
    let elements = vec![element; count].join(",");
    format!(r#"{{"choices":[{{"message":{{"{member}":[{elements}]}},"finish_reason":"stop"}}]}}"#)
}

#[test]
fn an_answer_has_so_many_calls_parts_and_thoughts_and_no_more() {
    for (member, element, most, parts) in [
        ("tool_calls", r#"{"function":{"name":"f"}}"#, PARTS, PARTS),
        ("content", r#"{"type":"odd"}"#, PARTS, PARTS),
        // Texts become one part.
        ("content", r#"{"type":"text","text":"x"}"#, LIST, 1),
        ("reasoning_details", r#"{"type":"t"}"#, PARTS, 1),
    ] {
        let response = whole(Wire::OpenAiChat, &repeated(member, element, most)).unwrap();
        assert_eq!(response.answer.parts.len(), parts, "{member}");
        let failed = whole(Wire::OpenAiChat, &repeated(member, element, most + 1)).unwrap_err();
        assert_eq!(failed.class, Class::Unreadable, "{member}");
    }
}

#[test]
fn an_answer_that_does_not_stream_has_so_many_bytes_and_no_more() {
    let mut reader = reader(Wire::OpenAiChat, MODEL, true);
    let mut pieces = Vec::new();
    let mut body = vec![b' '; ANSWER];
    body[0] = b'{';
    reader.push(&body, &mut pieces).unwrap();
    assert_eq!(reader.push(b" ", &mut pieces).unwrap_err().class, Class::Unreadable);
}
