//! Serialization of messages as lines, including the newline.

use serde::Serialize;
use serde_json::Error;

use crate::id::RequestId;
use crate::text::replace_line_breaks;

/// Appends a request as one line.
///
/// # Errors
///
/// Returns an error if `params` cannot be serialized as JSON. `out` is then unchanged.
pub fn write_request(
    out: &mut Vec<u8>,
    id: u64,
    method: &str,
    params: &(impl Serialize + ?Sized),
) -> Result<(), Error> {
    write_line(out, |out| {
        out.extend_from_slice(b",\"id\":");
        write_value(out, &id)?;
        out.extend_from_slice(b",\"method\":");
        write_value(out, method)?;
        out.extend_from_slice(b",\"params\":");
        write_value(out, params)
    })
}

/// Appends a notification as one line.
///
/// # Errors
///
/// Returns an error if `params` cannot be serialized as JSON. `out` is then unchanged.
pub fn write_notification(
    out: &mut Vec<u8>,
    method: &str,
    params: Option<&(impl Serialize + ?Sized)>,
) -> Result<(), Error> {
    write_line(out, |out| {
        out.extend_from_slice(b",\"method\":");
        write_value(out, method)?;
        let Some(params) = params else { return Ok(()) };
        out.extend_from_slice(b",\"params\":");
        write_value(out, params)
    })
}

/// Appends the response to a request as one line.
///
/// # Errors
///
/// Returns an error if `result` cannot be serialized as JSON. `out` is then unchanged.
pub fn write_response(
    out: &mut Vec<u8>,
    id: &RequestId,
    result: &(impl Serialize + ?Sized),
) -> Result<(), Error> {
    write_line(out, |out| {
        out.extend_from_slice(b",\"id\":");
        write_value(out, id)?;
        out.extend_from_slice(b",\"result\":");
        write_value(out, result)
    })
}

/// Appends an error response as one line.
///
/// # Errors
///
/// Never in practice, because strings and numbers always serialize. After an error `out` would be
/// unchanged.
pub fn write_error(
    out: &mut Vec<u8>,
    id: &RequestId,
    code: i64,
    message: &str,
) -> Result<(), Error> {
    write_line(out, |out| {
        out.extend_from_slice(b",\"id\":");
        write_value(out, id)?;
        out.extend_from_slice(b",\"error\":{\"code\":");
        write_value(out, &code)?;
        out.extend_from_slice(b",\"message\":");
        write_value(out, message)?;
        out.push(b'}');
        Ok(())
    })
}

fn write_line(
    out: &mut Vec<u8>,
    members: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let start = out.len();
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    if let Err(error) = members(out) {
        out.truncate(start);
        return Err(error);
    }
    out.push(b'}');
    replace_line_breaks(&mut out[start..]);
    out.push(b'\n');
    Ok(())
}

fn write_value(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
    serde_json::to_writer(out, value)
}
