//! The loop of a stdio server: lines in, lines out, until the input ends.

#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind, Read, Write};

use innkeeper_protocol::envelope::{code, parse, write_error, write_response};
use innkeeper_protocol::framing::DEFAULT_LINE_LIMIT;
use innkeeper_protocol::{
    Frame, Incoming, LineFramer, Malformed, MalformedKind, Message, RequestId,
};
use serde_json::json;

use super::service::Service;
use super::session::{Refusal, Session};

/// Serves until the input ends or nobody reads the output any more.
///
/// One request is answered before the next is read, so a cancellation always comes too late and
/// answers leave in the order of their requests.
///
/// # Errors
///
/// A stream that breaks in any other way.
pub(super) fn run(
    service: impl Service,
    mut input: impl Read,
    mut output: impl Write,
) -> io::Result<()> {
    let mut session = Session::new(service);
    let mut framer = LineFramer::new(DEFAULT_LINE_LIMIT);
    let mut send = |lines: &[u8]| output.write_all(lines).and_then(|()| output.flush());
    let mut bytes = [0; 8 << 10];
    loop {
        let read = match input.read(&mut bytes) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        framer.space().extend_from_slice(&bytes[..read]);
        let ended = read == 0;
        while let Some(frame) = if ended { framer.finish() } else { framer.next_frame() } {
            match send(&answer(&mut session, &frame)?) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                sent => sent?,
            }
        }
        if ended {
            return Ok(());
        }
    }
}

/// The lines that answer one line: one, or none where nothing is to be said.
fn answer(session: &mut Session<impl Service>, frame: &Frame<'_>) -> io::Result<Vec<u8>> {
    let parsed = match frame {
        Frame::Line(line) => parse(line),
        Frame::TooLong { head } => Err(Malformed::too_long(head)),
    };
    let mut lines = Vec::new();
    match parsed {
        Ok(Message::One(message)) => one(session, Ok(message), &mut lines)?,
        Ok(Message::Batch(messages)) => batch(session, messages, &mut lines)?,
        Err(malformed) => one(session, Err(malformed), &mut lines)?,
    }
    Ok(lines)
}

fn one(
    session: &mut Session<impl Service>,
    message: Result<Incoming<'_>, Malformed>,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    match message {
        Ok(Incoming::Request { id, method, params }) => {
            match session.answer(&method, params) {
                Ok(result) => write_response(out, &id, &result)?,
                Err(refusal) => refuse(out, &id, refusal)?,
            }
            Ok(())
        }
        Ok(Incoming::Notification { .. } | Incoming::Response { .. }) => Ok(()),
        Err(malformed) => complain(out, &malformed),
    }
}

/// Answers a batch with a batch; a revision without batches refuses each request of it.
fn batch(
    session: &mut Session<impl Service>,
    messages: Vec<Result<Incoming<'_>, Malformed>>,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let allowed = session.allows_batches();
    let mut answers = Vec::new();
    for message in messages {
        match message {
            Ok(Incoming::Request { id, .. }) if !allowed => {
                let text = "this revision of the protocol has no batches";
                write_error(&mut answers, &id, code::INVALID_REQUEST, text)?;
            }
            message => one(session, message, &mut answers)?,
        }
    }
    let lines: Vec<_> = answers.split(|byte| *byte == b'\n').filter(|l| !l.is_empty()).collect();
    match lines.as_slice() {
        [] => {}
        lines if allowed => {
            out.push(b'[');
            out.extend(lines.join(&b','));
            out.extend_from_slice(b"]\n");
        }
        _ => out.append(&mut answers),
    }
    Ok(())
}

fn refuse(out: &mut Vec<u8>, id: &RequestId, refusal: Refusal) -> io::Result<()> {
    let Refusal { code, message, data } = refusal;
    let Some(data) = data else { return Ok(write_error(out, id, code, &message)?) };
    let error = json!({ "code": code, "message": message, "data": data });
    serde_json::to_writer(&mut *out, &json!({ "jsonrpc": "2.0", "id": id, "error": error }))?;
    out.push(b'\n');
    Ok(())
}

/// Answers a request that could not be read if its id could; anything else is only logged,
/// because an answer without an id helps nobody.
fn complain(out: &mut Vec<u8>, malformed: &Malformed) -> io::Result<()> {
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
