//! Serialization of messages as lines, including the newline.

use serde_json::Error;
use serde_json::value::RawValue;

use crate::id::RequestId;
use crate::json_text::{JsonText, write_member};
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
    params: &(impl JsonText + ?Sized),
) -> Result<(), Error> {
    write_request_members(out, &id, method, Some(params))
}

/// Appends a request with an id of any type and optional params as one line.
///
/// # Errors
///
/// As [`write_request`].
pub fn write_request_with_id(
    out: &mut Vec<u8>,
    id: &RequestId,
    method: &str,
    params: Option<&(impl JsonText + ?Sized)>,
) -> Result<(), Error> {
    write_request_members(out, id, method, params)
}

fn write_request_members(
    out: &mut Vec<u8>,
    id: &impl JsonText,
    method: &str,
    params: Option<&(impl JsonText + ?Sized)>,
) -> Result<(), Error> {
    write_line(out, |out| {
        write_member(out, "id", id)?;
        write_member(out, "method", method)?;
        params.map_or(Ok(()), |params| write_member(out, "params", params))
    })
}

/// Appends a notification as one line. The params may be a `RawValue`, whose numbers and members keep
/// their text.
///
/// # Errors
///
/// Returns an error if `params` cannot be serialized as JSON. `out` is then unchanged.
pub fn write_notification(
    out: &mut Vec<u8>,
    method: &str,
    params: Option<&(impl JsonText + ?Sized)>,
) -> Result<(), Error> {
    write_line(out, |out| {
        write_member(out, "method", method)?;
        params.map_or(Ok(()), |params| write_member(out, "params", params))
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
    result: &(impl JsonText + ?Sized),
) -> Result<(), Error> {
    write_line(out, |out| {
        write_member(out, "id", id)?;
        write_member(out, "result", result)
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
    write_error_with_data(out, ErrorId::Request(id), code, message, None)
}

/// The id of an error response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorId<'a> {
    /// The id of the request.
    Request(&'a RequestId),
    /// `null`: the id of a message that is not a request cannot be read (JSON-RPC 2.0, Response
    /// object).
    Null,
    /// No member `id`. The schemas of MCP since 2025-11-25 permit a response without id, and no
    /// schema permits `null`.
    Absent,
}

/// Appends an error response with additional data as one line.
///
/// # Errors
///
/// As [`write_error`].
pub fn write_error_with_data(
    out: &mut Vec<u8>,
    id: ErrorId<'_>,
    code: i64,
    message: &str,
    data: Option<&RawValue>,
) -> Result<(), Error> {
    write_line(out, |out| {
        match id {
            ErrorId::Request(id) => write_member(out, "id", id)?,
            ErrorId::Null => write_member(out, "id", &())?,
            ErrorId::Absent => {}
        }
        out.extend_from_slice(b",\"error\":{\"code\":");
        code.write_json(out)?;
        write_member(out, "message", message)?;
        if let Some(data) = data {
            write_member(out, "data", data)?;
        }
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
