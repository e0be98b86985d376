//! Tests of the shape checks of results.

use super::raw;
use crate::view::{ViewError, check_prompt_result, check_read_result, check_tool_result};

fn check_tool(json: &str) -> Result<bool, (String, &'static str)> {
    check_tool_result(&raw(json)).map_err(|error| (error.pointer, error.found))
}

fn list_error(
    check: fn(&serde_json::value::RawValue) -> Result<(), ViewError>,
    json: &str,
) -> String {
    check(&raw(json)).err().map_or_else(|| "fine".to_owned(), |error| error.pointer)
}

#[test]
fn a_tool_result_reports_whether_the_tool_failed() {
    assert_eq!(check_tool(r#"{"content":[]}"#), Ok(false));
    assert_eq!(check_tool(r#"{"content":[{"type":"text","text":"]}"}],"isError":true}"#), Ok(true));
    assert_eq!(
        check_tool(r#" { "isError" : false , "content" : [ { "type" : "x" } ] } "#),
        Ok(false)
    );
    assert_eq!(check_tool(r#"{"isError":null,"structuredContent":{"isError":true}}"#), Ok(false));
    assert_eq!(check_tool(r#"{"is\u0045rror":true}"#), Ok(true));
    assert_eq!(check_tool(r#"{"resultType":"input_required","inputRequests":{}}"#), Ok(false));
    assert_eq!(check_tool("{}"), Ok(false));
}

/// Proves: FR7.5
#[test]
fn a_tool_result_of_the_wrong_shape_says_where() {
    let wrong = |pointer: &str, found| Err((pointer.to_owned(), found));
    assert_eq!(check_tool("null"), wrong("", "null"));
    assert_eq!(check_tool("[]"), wrong("", "an array"));
    assert_eq!(check_tool(r#""text""#), wrong("", "a string"));
    assert_eq!(check_tool(r#"{"content":"text"}"#), wrong("/content", "a string"));
    assert_eq!(check_tool(r#"{"content":null}"#), wrong("/content", "null"));
    assert_eq!(check_tool(r#"{"content":[{"type":"x"},"y"]}"#), wrong("/content/1", "a string"));
    assert_eq!(check_tool(r#"{"content":[{}]}"#), wrong("/content/0/type", "nothing"));
    assert_eq!(check_tool(r#"{"content":[{"type":{}}]}"#), wrong("/content/0/type", "an object"));
    assert_eq!(check_tool(r#"{"isError":"true"}"#), wrong("/isError", "a string"));
    assert_eq!(check_tool(r#"{"content":[],"isError":1}"#), wrong("/isError", "a number"));
    assert_eq!(check_tool(r#"{"isError":true,"isError":false}"#), wrong("/isError", "two"));
    assert_eq!(check_tool(r#"{"content":[],"cont\u0065nt":[]}"#), wrong("/content", "two"));
}

/// Proves: FR7.5
#[test]
fn prompts_need_messages_and_reads_need_contents() {
    let prompt = |json| list_error(check_prompt_result, json);
    assert_eq!(prompt(r#"{"messages":[{"role":"user","content":{"type":"text"}}]}"#), "fine");
    assert_eq!(prompt(r#"{"description":"x"}"#), "/messages");
    assert_eq!(prompt(r#"{"messages":{}}"#), "/messages");
    assert_eq!(prompt(r#"{"messages":[{"content":{}}]}"#), "/messages/0/role");
    assert_eq!(prompt("3"), "");
    let read = |json| list_error(check_read_result, json);
    assert_eq!(read(r#"{"contents":[{"uri":"x:","blob":""}],"ttlMs":1}"#), "fine");
    assert_eq!(read(r#"{"contents":[{"uri":5}]}"#), "/contents/0/uri");
    assert_eq!(read(r#"{"contents":[],"contents":[]}"#), "/contents");
    assert_eq!(read("{}"), "/contents");
}

#[test]
fn an_input_required_result_needs_neither() {
    let incomplete = r#"{"resultType":"input_required","requestState":"x"}"#;
    assert_eq!(list_error(check_prompt_result, incomplete), "fine");
    assert_eq!(list_error(check_read_result, incomplete), "fine");
    assert_eq!(list_error(check_read_result, r#"{"resultType":"complete"}"#), "/contents");
}
