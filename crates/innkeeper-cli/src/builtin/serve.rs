//! The loop of a stdio server: one JSON-RPC message per line.

#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind, Read, Write};

use innkeeper_protocol::envelope::{code, parse, write_error, write_response};
use innkeeper_protocol::framing::DEFAULT_MAX_LINE_BYTES;
use innkeeper_protocol::{
    Frame, Incoming, LineFramer, MalformedKind, MalformedMessage, Message, RequestId,
};
use serde_json::json;

use super::service::Service;
use super::session::{JsonRpcError, Session};

/// Serves until the input ends or the client closes the output.
///
/// The server handles requests one at a time, so responses are in request order and a cancellation
/// always arrives after its request has completed.
///
/// # Errors
///
/// Any other I/O error.
pub(super) fn run(
    service: impl Service,
    mut input: impl Read,
    mut output: impl Write,
) -> io::Result<()> {
    let mut session = Session::new(service);
    let mut framer = LineFramer::new(DEFAULT_MAX_LINE_BYTES);
    let mut bytes = [0; 8 << 10];
    loop {
        let read = match input.read(&mut bytes) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        framer.read_buffer().extend_from_slice(&bytes[..read]);
        let ended = read == 0;
        while let Some(frame) = if ended { framer.finish() } else { framer.next_frame() } {
            let lines = respond(&mut session, &frame)?;
            match output.write_all(&lines).and_then(|()| output.flush()) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                sent => sent?,
            }
        }
        if ended {
            return Ok(());
        }
    }
}

/// Returns the response line to one input line; empty for a notification.
fn respond(session: &mut Session<impl Service>, frame: &Frame<'_>) -> io::Result<Vec<u8>> {
    let parsed = match frame {
        Frame::Line(line) => parse(line),
        Frame::TooLong { head } => Err(MalformedMessage::too_long(head)),
    };
    let mut lines = Vec::new();
    match parsed {
        Ok(Message::Single(message)) => respond_to_message(session, Ok(message), &mut lines)?,
        Ok(Message::Batch(messages)) => respond_to_batch(session, messages, &mut lines)?,
        Err(malformed) => respond_to_message(session, Err(malformed), &mut lines)?,
    }
    Ok(lines)
}

fn respond_to_message(
    session: &mut Session<impl Service>,
    message: Result<Incoming<'_>, MalformedMessage>,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    match message {
        Ok(Incoming::Request { id, method, params }) => {
            match session.handle_request(&method, params) {
                Ok(result) => write_response(out, &id, &result)?,
                Err(rpc_error) => write_error_response(out, &id, rpc_error)?,
            }
            Ok(())
        }
        Ok(Incoming::Notification { .. } | Incoming::Response { .. }) => Ok(()),
        Err(malformed) => write_malformed_response(out, &malformed),
    }
}

/// Responds to a batch with a batch; a revision without batches rejects each request.
fn respond_to_batch(
    session: &mut Session<impl Service>,
    messages: Vec<Result<Incoming<'_>, MalformedMessage>>,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let allowed = session.allows_batches();
    let mut responses = Vec::new();
    for message in messages {
        match message {
            Ok(Incoming::Request { id, .. }) if !allowed => {
                let text = "this protocol version does not support batches";
                write_error(&mut responses, &id, code::INVALID_REQUEST, text)?;
            }
            message => respond_to_message(session, message, &mut responses)?,
        }
    }
    let lines: Vec<_> = responses.split(|byte| *byte == b'\n').filter(|l| !l.is_empty()).collect();
    match lines.as_slice() {
        [] => {}
        lines if allowed => {
            out.push(b'[');
            out.extend(lines.join(&b','));
            out.extend_from_slice(b"]\n");
        }
        _ => out.append(&mut responses),
    }
    Ok(())
}

fn write_error_response(
    out: &mut Vec<u8>,
    id: &RequestId,
    rpc_error: JsonRpcError,
) -> io::Result<()> {
    let JsonRpcError { code, message, data } = rpc_error;
    let Some(data) = data else { return Ok(write_error(out, id, code, &message)?) };
    let error = json!({ "code": code, "message": message, "data": data });
    serde_json::to_writer(&mut *out, &json!({ "jsonrpc": "2.0", "id": id, "error": error }))?;
    out.push(b'\n');
    Ok(())
}

/// Writes an error response to a malformed request that has an id; logs every other malformed
/// message, because a client cannot use a response without an id.
fn write_malformed_response(out: &mut Vec<u8>, malformed: &MalformedMessage) -> io::Result<()> {
    tracing::warn!("message ignored: {malformed}");
    let Some(id) = malformed.id.as_ref().filter(|_| !malformed.looks_like_response) else {
        return Ok(());
    };
    let is_json = !matches!(
        malformed.kind,
        MalformedKind::NotUtf8 | MalformedKind::NotJson | MalformedKind::MultiLineJson
    );
    let code = if is_json { code::INVALID_REQUEST } else { code::PARSE_ERROR };
    Ok(write_error(out, id, code, &malformed.to_string())?)
}
