//! Answers at a limit and one past it.

use crate::provider::codec::PARTS;
use crate::provider::openai::cuts::whole;
use crate::provider::{Class, Wire};

fn repeated(member: &str, element: &str, count: usize) -> String {
    let elements = vec![element; count].join(",");
    format!(r#"{{"choices":[{{"message":{{"{member}":[{elements}]}},"finish_reason":"stop"}}]}}"#)
}

#[test]
fn an_answer_has_so_many_calls_parts_and_thoughts_and_no_more() {
    for (member, element, parts) in [
        ("tool_calls", r#"{"function":{"name":"f"}}"#, PARTS),
        ("content", r#"{"type":"odd"}"#, PARTS),
        ("reasoning_details", r#"{"type":"t"}"#, 1),
    ] {
        let response = whole(Wire::OpenAiChat, &repeated(member, element, PARTS)).unwrap();
        assert_eq!(response.answer.parts.len(), parts, "{member}");
        let failed = whole(Wire::OpenAiChat, &repeated(member, element, PARTS + 1)).unwrap_err();
        assert_eq!(failed.0, Class::Unreadable, "{member}");
    }
}
