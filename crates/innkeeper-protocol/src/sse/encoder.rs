//! Server-Sent Events encoder for a server.

use memchr::memchr2;

use super::MAX_FIELD_BYTES;
use crate::text;

/// The bytes of a keep-alive: a comment without text (2026-07-28, Streamable HTTP, Receiving
/// Messages).
pub const KEEP_ALIVE: &[u8] = b":\n";

/// An event to write with [`write_event`].
#[derive(Clone, Copy, Debug, Default)]
pub struct OutgoingEvent<'a> {
    /// The id, at which the client may resume the stream. An empty id resets the client's last id.
    pub id: Option<&'a str>,
    /// The event name. Without a name, or with an empty name, the client uses
    /// [`DEFAULT_EVENT_NAME`](super::DEFAULT_EVENT_NAME).
    pub name: Option<&'a str>,
    /// The delay before the client reconnects, in milliseconds.
    pub retry: Option<u64>,
    /// The data.
    pub data: OutgoingData<'a>,
}

/// The data of an [`OutgoingEvent`].
#[derive(Clone, Copy, Debug, Default)]
pub enum OutgoingData<'a> {
    /// No data: the client reads `id` and `retry`, and no event.
    #[default]
    Absent,
    /// Text. The client reads each line break (`\r`, `\n` or `\r\n`) as `\n`.
    Text(&'a str),
    /// Valid JSON, such as a line of [`envelope`](crate::envelope). Each line break becomes a
    /// space, because a line break between the tokens of JSON is white space. Line breaks at the
    /// end are omitted.
    Json(&'a [u8]),
}

/// The error for a field of an event that a client cannot read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventFieldError {
    /// The field contains a line break or a NUL character.
    #[error("field `{field}` of an event contains a line break or a NUL character")]
    InvalidCharacter {
        /// The name of the field.
        field: &'static str,
    },
    /// The field is longer than [`MAX_FIELD_BYTES`].
    #[error("field `{field}` of an event has {length} bytes; the limit is {MAX_FIELD_BYTES} bytes")]
    TooLong {
        /// The name of the field.
        field: &'static str,
        /// The length in bytes.
        length: usize,
    },
}

/// Appends an event (HTML standard, Server-sent events, Parsing an event stream). The data has no
/// limit.
///
/// # Errors
///
/// Returns an error if the id or the name contains a line break or a NUL character or is longer
/// than [`MAX_FIELD_BYTES`]. `out` is then unchanged.
pub fn write_event(out: &mut Vec<u8>, event: &OutgoingEvent<'_>) -> Result<(), EventFieldError> {
    let fields = [("id", event.id), ("event", event.name)];
    for (field, value) in fields {
        check_field(field, value.unwrap_or_default())?;
    }
    for (field, value) in fields {
        if let Some(value) = value {
            write_field(out, field, value.as_bytes());
        }
    }
    if let Some(retry) = event.retry {
        write_field(out, "retry", retry.to_string().as_bytes());
    }
    match event.data {
        OutgoingData::Absent => {}
        OutgoingData::Text(text) => write_lines(out, "data", text.as_bytes()),
        OutgoingData::Json(json) => {
            let end = json.iter().rposition(|byte| !b"\r\n".contains(byte));
            let start = out.len();
            write_field(out, "data", &json[..end.map_or(0, |last| last + 1)]);
            let last = out.len() - 1;
            text::replace_line_breaks(&mut out[start..last]);
        }
    }
    out.push(b'\n');
    Ok(())
}

/// Appends a comment, which a client ignores: one line for each line of `text`. Comments belong
/// between events; [`KEEP_ALIVE`] is the comment without text.
pub fn write_comment(out: &mut Vec<u8>, text: &str) {
    write_lines(out, "", text.as_bytes());
}

fn check_field(field: &'static str, value: &str) -> Result<(), EventFieldError> {
    if value.contains(['\r', '\n', '\0']) {
        return Err(EventFieldError::InvalidCharacter { field });
    }
    if value.len() > MAX_FIELD_BYTES {
        return Err(EventFieldError::TooLong { field, length: value.len() });
    }
    Ok(())
}

/// Appends one field for each line of `text`.
fn write_lines(out: &mut Vec<u8>, field: &str, text: &[u8]) {
    let mut rest = text;
    while let Some(end) = memchr2(b'\r', b'\n', rest) {
        write_field(out, field, &rest[..end]);
        let break_length = if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = &rest[end + break_length..];
    }
    write_field(out, field, rest);
}

/// Appends one line. The client removes the space after the colon, and no further space of the
/// value.
fn write_field(out: &mut Vec<u8>, field: &str, value: &[u8]) {
    out.extend_from_slice(field.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::{EventFieldError, OutgoingData, OutgoingEvent, write_comment, write_event};
    use crate::sse::MAX_FIELD_BYTES;

    fn written(event: OutgoingEvent<'_>) -> String {
        let mut out = Vec::new();
        write_event(&mut out, &event).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn text_event(text: &str) -> OutgoingEvent<'_> {
        OutgoingEvent { data: OutgoingData::Text(text), ..OutgoingEvent::default() }
    }

    #[test]
    fn an_event_has_the_fields_that_it_sets() {
        let data = OutgoingData::Text("a");
        let event = OutgoingEvent { id: Some("7"), name: Some("endpoint"), retry: Some(500), data };
        assert_eq!(written(event), "id: 7\nevent: endpoint\nretry: 500\ndata: a\n\n");
        assert_eq!(written(text_event("")), "data: \n\n");
        let event = OutgoingEvent { id: Some(""), ..OutgoingEvent::default() };
        assert_eq!(written(event), "id: \n\n");
    }

    #[test]
    fn each_line_of_text_is_a_data_line() {
        assert_eq!(
            written(text_event("a\nb\rc\r\n\r\r\nd")),
            "data: a\ndata: b\ndata: c\ndata: \ndata: \ndata: d\n\n"
        );
        assert_eq!(written(text_event("id: 5\n")), "data: id: 5\ndata: \n\n");
    }

    #[test]
    fn json_is_one_data_line() {
        let json = |text: &'static str| {
            let data = OutgoingData::Json(text.as_bytes());
            written(OutgoingEvent { data, ..OutgoingEvent::default() })
        };
        assert_eq!(json("{\r\n\"a\": \"\\n\"\n}\n"), "data: {  \"a\": \"\\n\" }\n\n");
        assert_eq!(json("1\r\n\n"), "data: 1\n\n");
        assert_eq!(json("\n"), "data: \n\n");
    }

    #[test]
    fn a_comment_has_one_line_for_each_line_of_its_text() {
        let mut out = Vec::new();
        write_comment(&mut out, "a\r\ndata: b");
        assert_eq!(out, b": a\n: data: b\n");
    }

    /// Attack: framing | the id or the name of an event contains a line break | the event is an error,
    /// and no byte is written | Foreign text stays text
    #[test]
    fn a_line_break_in_a_field_is_an_error_and_writes_nothing() {
        for (id, name, field) in
            [("a\nb", "", "id"), ("a\0", "", "id"), ("", "a\r", "event"), ("", "\n", "event")]
        {
            let event = OutgoingEvent { id: Some(id), name: Some(name), ..text_event("x") };
            let mut out = b"before".to_vec();
            let error = write_event(&mut out, &event).unwrap_err();
            assert_eq!(error, EventFieldError::InvalidCharacter { field });
            assert_eq!(out, b"before");
        }
    }

    #[test]
    fn a_field_at_the_limit_is_written_and_one_past_it_is_an_error() {
        let at_limit = "x".repeat(MAX_FIELD_BYTES);
        let event = OutgoingEvent { id: Some(&at_limit), name: Some(&at_limit), ..text_event("") };
        assert_eq!(written(event).len(), "id: \nevent: \ndata: \n\n".len() + 2 * MAX_FIELD_BYTES);
        let length = MAX_FIELD_BYTES + 1;
        let past = "x".repeat(length);
        let event = OutgoingEvent { name: Some(&past), ..text_event("") };
        let error = write_event(&mut Vec::new(), &event).unwrap_err();
        assert_eq!(error, EventFieldError::TooLong { field: "event", length });
    }
}
