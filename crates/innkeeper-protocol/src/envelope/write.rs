//! Message → line, its newline included.

use memchr::memchr;
use serde::Serialize;
use serde_json::Error;

use crate::id::RequestId;

/// Appends a request as one line.
///
/// # Errors
///
/// If `params` cannot be written as JSON; `out` is then as it was.
pub fn write_request(
    out: &mut Vec<u8>,
    id: u64,
    method: &str,
    params: &(impl Serialize + ?Sized),
) -> Result<(), Error> {
    line(out, |out| {
        out.extend_from_slice(b",\"id\":");
        value(out, &id)?;
        out.extend_from_slice(b",\"method\":");
        value(out, method)?;
        out.extend_from_slice(b",\"params\":");
        value(out, params)
    })
}

/// Appends a notification as one line.
///
/// # Errors
///
/// If `params` cannot be written as JSON; `out` is then as it was.
pub fn write_notification(
    out: &mut Vec<u8>,
    method: &str,
    params: Option<&(impl Serialize + ?Sized)>,
) -> Result<(), Error> {
    line(out, |out| {
        out.extend_from_slice(b",\"method\":");
        value(out, method)?;
        let Some(params) = params else { return Ok(()) };
        out.extend_from_slice(b",\"params\":");
        value(out, params)
    })
}

/// Appends the answer to a request as one line.
///
/// # Errors
///
/// If `result` cannot be written as JSON; `out` is then as it was.
pub fn write_response(
    out: &mut Vec<u8>,
    id: &RequestId,
    result: &(impl Serialize + ?Sized),
) -> Result<(), Error> {
    line(out, |out| {
        out.extend_from_slice(b",\"id\":");
        value(out, id)?;
        out.extend_from_slice(b",\"result\":");
        value(out, result)
    })
}

/// Appends the refusal of a request as one line.
///
/// # Errors
///
/// Never in practice: all of it is text and numbers. `out` would then be as it was.
pub fn write_error(
    out: &mut Vec<u8>,
    id: &RequestId,
    code: i64,
    message: &str,
) -> Result<(), Error> {
    line(out, |out| {
        out.extend_from_slice(b",\"id\":");
        value(out, id)?;
        out.extend_from_slice(b",\"error\":{\"code\":");
        value(out, &code)?;
        out.extend_from_slice(b",\"message\":");
        value(out, message)?;
        out.push(b'}');
        Ok(())
    })
}

fn line(
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
    join_lines(&mut out[start..]);
    out.push(b'\n');
    Ok(())
}

fn value(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
    serde_json::to_writer(out, value)
}

/// Raw JSON is written as it stands and may be pretty-printed. In JSON a line break can only be
/// white space, because inside a string it would be escaped.
fn join_lines(message: &mut [u8]) {
    let mut from = 0;
    while let Some(offset) = memchr(b'\n', &message[from..]) {
        from += offset;
        message[from] = b' ';
    }
}
