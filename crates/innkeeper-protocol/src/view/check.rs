//! Whether a result has the shape its method promises, at no cost worth naming: this is done for
//! every call, in one pass and without allocating.

use serde_json::value::RawValue;

use super::{ViewError, kind};
use crate::skim::Cursor;
use crate::text::key_is;

/// Checks the result of `tools/call` and says whether the tool reports a failure.
///
/// `content` may be missing, because structured results and requests for input have none.
///
/// # Errors
///
/// If it is not an object, if `content` is not an array of objects with a string `type` each, or if
/// `isError` is not a boolean; also if one of the two is there twice, because then nobody can say
/// which one holds.
pub fn check_tool_result(raw: &RawValue) -> Result<bool, ViewError> {
    let mut cursor = Cursor::new(raw.get());
    enter_object(&mut cursor, String::new)?;
    let (mut content, mut is_error) = (false, None);
    while let Some(key) = cursor.next_key() {
        if key_is(key, "content") {
            once(content, "content")?;
            content = true;
            check_items(&mut cursor, "content", "type")?;
        } else if key_is(key, "isError") {
            once(is_error.is_some(), "isError")?;
            is_error = Some(match cursor.value() {
                Some("true") => true,
                Some("false" | "null") => false,
                found => return Err(ViewError::new("/isError".to_owned(), "a boolean", found)),
            });
        } else {
            cursor.value();
        }
    }
    Ok(is_error.unwrap_or_default())
}

/// Checks the result of `prompts/get`.
///
/// # Errors
///
/// If it is not an object, or `messages` not an array of objects with a string `role` each. A
/// result that says it is not complete (`resultType`) needs no messages.
pub fn check_prompt_result(raw: &RawValue) -> Result<(), ViewError> {
    check_list(raw, "messages", "role")
}

/// Checks the result of `resources/read`.
///
/// # Errors
///
/// If it is not an object, or `contents` not an array of objects with a string `uri` each. A result
/// that says it is not complete (`resultType`) needs no contents.
pub fn check_read_result(raw: &RawValue) -> Result<(), ViewError> {
    check_list(raw, "contents", "uri")
}

fn check_list(raw: &RawValue, list: &'static str, required: &str) -> Result<(), ViewError> {
    let mut cursor = Cursor::new(raw.get());
    enter_object(&mut cursor, String::new)?;
    let (mut seen, mut complete) = (false, true);
    while let Some(key) = cursor.next_key() {
        if key_is(key, list) {
            once(seen, list)?;
            seen = true;
            check_items(&mut cursor, list, required)?;
        } else if key_is(key, "resultType") {
            complete = matches!(cursor.value(), Some("\"complete\"" | "null"));
        } else {
            cursor.value();
        }
    }
    if complete && !seen {
        return Err(ViewError::new(format!("/{list}"), "an array", None));
    }
    Ok(())
}

/// Checks that an array of objects comes next, each with the string `required`.
fn check_items(
    cursor: &mut Cursor<'_>,
    list: &'static str,
    required: &str,
) -> Result<(), ViewError> {
    if !cursor.enter(b'[') {
        return Err(wrong(format!("/{list}"), "an array", cursor));
    }
    let mut index = 0_usize;
    while cursor.next_element() {
        enter_object(cursor, || format!("/{list}/{index}"))?;
        let mut seen = false;
        while let Some(key) = cursor.next_key() {
            if key_is(key, required) {
                seen = true;
                if cursor.peek() != Some(b'"') {
                    return Err(wrong(format!("/{list}/{index}/{required}"), "a string", cursor));
                }
            }
            cursor.value();
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
    if cursor.enter(b'{') { Ok(()) } else { Err(wrong(pointer(), "an object", cursor)) }
}

fn wrong(pointer: String, expected: &'static str, cursor: &mut Cursor<'_>) -> ViewError {
    ViewError { pointer, expected, found: kind(cursor.peek()) }
}

fn once(seen: bool, name: &'static str) -> Result<(), ViewError> {
    if seen {
        let pointer = format!("/{name}");
        return Err(ViewError { pointer, expected: "one member of that name", found: "two" });
    }
    Ok(())
}
