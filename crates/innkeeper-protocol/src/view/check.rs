//! Shape checks of results, in one pass and without allocation.
//!
//! These checks run for every call.

use serde_json::value::RawValue;

use super::{ViewError, json_type_name};
use crate::skim::Cursor;
use crate::text::key_is;

/// Checks the result of `tools/call` and returns whether the tool reports an error.
///
/// `content` may be missing, because structured results and results that require input have none.
///
/// # Errors
///
/// Returns an error if the result is not an object, if `content` is not an array of objects with a
/// string `type` each, or if `isError` is not a boolean. Also returns an error if `content` or
/// `isError` occurs twice, because it is then unclear which value applies.
pub fn check_tool_result(raw: &RawValue) -> Result<bool, ViewError> {
    let mut cursor = Cursor::new(raw.get());
    enter_object(&mut cursor, String::new)?;
    let mut content = false;
    let mut is_error = None;
    while let Some(key) = cursor.next_key() {
        if key_is(key, "content") {
            reject_duplicate(content, "content")?;
            content = true;
            check_items(&mut cursor, "content", "type")?;
        } else if key_is(key, "isError") {
            reject_duplicate(is_error.is_some(), "isError")?;
            is_error = Some(match cursor.next_value() {
                Some("true") => true,
                Some("false" | "null") => false,
                other => return Err(ViewError::new("/isError".to_owned(), "a boolean", other)),
            });
        } else {
            cursor.next_value();
        }
    }
    Ok(is_error.unwrap_or_default())
}

/// Checks the result of `prompts/get`.
///
/// # Errors
///
/// Returns an error if the result is not an object or `messages` is not an array of objects with a
/// string `role` each. A result whose `resultType` is not `complete` needs no messages.
pub fn check_prompt_result(raw: &RawValue) -> Result<(), ViewError> {
    check_list(raw, "messages", "role")
}

/// Checks the result of `resources/read`.
///
/// # Errors
///
/// Returns an error if the result is not an object or `contents` is not an array of objects with a
/// string `uri` each. A result whose `resultType` is not `complete` needs no contents.
pub fn check_read_result(raw: &RawValue) -> Result<(), ViewError> {
    check_list(raw, "contents", "uri")
}

fn check_list(raw: &RawValue, list: &'static str, required: &str) -> Result<(), ViewError> {
    let mut cursor = Cursor::new(raw.get());
    enter_object(&mut cursor, String::new)?;
    let mut seen = false;
    let mut complete = true;
    while let Some(key) = cursor.next_key() {
        if key_is(key, list) {
            reject_duplicate(seen, list)?;
            seen = true;
            check_items(&mut cursor, list, required)?;
        } else if key_is(key, "resultType") {
            complete = matches!(cursor.next_value(), Some("\"complete\"" | "null"));
        } else {
            cursor.next_value();
        }
    }
    if complete && !seen {
        return Err(ViewError::new(format!("/{list}"), "an array", None));
    }
    Ok(())
}

/// Checks that the next value is an array of objects with a string `required` each.
fn check_items(
    cursor: &mut Cursor<'_>,
    list: &'static str,
    required: &str,
) -> Result<(), ViewError> {
    if !cursor.enter(b'[') {
        return Err(unexpected_type(format!("/{list}"), "an array", cursor));
    }
    let mut index = 0_usize;
    while cursor.next_element() {
        enter_object(cursor, || format!("/{list}/{index}"))?;
        let mut seen = false;
        while let Some(key) = cursor.next_key() {
            if key_is(key, required) {
                seen = true;
                if cursor.peek() != Some(b'"') {
                    return Err(unexpected_type(
                        format!("/{list}/{index}/{required}"),
                        "a string",
                        cursor,
                    ));
                }
            }
            cursor.next_value();
        }
        if !seen {
            let pointer = format!("/{list}/{index}/{required}");
            return Err(ViewError::new(pointer, "a string", None));
        }
        index += 1;
    }
    Ok(())
}

fn enter_object(
    cursor: &mut Cursor<'_>,
    pointer: impl FnOnce() -> String,
) -> Result<(), ViewError> {
    if cursor.enter(b'{') { Ok(()) } else { Err(unexpected_type(pointer(), "an object", cursor)) }
}

fn unexpected_type(pointer: String, expected: &'static str, cursor: &mut Cursor<'_>) -> ViewError {
    ViewError { pointer, expected, found: json_type_name(cursor.peek()) }
}

fn reject_duplicate(seen: bool, name: &'static str) -> Result<(), ViewError> {
    if seen {
        let pointer = format!("/{name}");
        return Err(ViewError { pointer, expected: "one member of this name", found: "two" });
    }
    Ok(())
}
