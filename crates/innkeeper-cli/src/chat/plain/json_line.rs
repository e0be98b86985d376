//! A line of stdin with `--json`: an object of a program, or a typed line.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JsonLine {
    /// A message or a command, as a person types it.
    Typed(String),
    /// A message for the model, as it is.
    Message(String),
    /// An object with the response to the question with this id.
    Response(u64),
}

/// A problem of an object, with the id of the question that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LineProblem {
    pub(super) id: Option<u64>,
    pub(super) text: String,
}

/// The members that select the form of an object.
#[derive(Deserialize)]
struct Header {
    r#type: Option<String>,
    id: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageObject {
    #[serde(rename = "type")]
    _type: IgnoredAny,
    text: String,
}

/// Parses a line. A line that starts with `{` must be an object.
pub(super) fn parse(line: &str) -> Result<JsonLine, LineProblem> {
    if !line.trim_start().starts_with('{') {
        return Ok(JsonLine::Typed(line.to_owned()));
    }
    if let Err(error) = serde_json::from_str::<Map<String, Value>>(line) {
        return problem(None, format!("the line is no JSON object: {error}"));
    }
    let header: Header = match serde_json::from_str(line) {
        Ok(header) => header,
        Err(error) => return problem(None, format!("the object is invalid: {error}")),
    };
    let id = header.id.as_ref().and_then(Value::as_u64);
    match header.r#type.as_deref() {
        Some("message") => match serde_json::from_str::<MessageObject>(line) {
            Ok(message) if message.text.trim().is_empty() => {
                problem(None, "the message is empty".to_owned())
            }
            Ok(message) => Ok(JsonLine::Message(message.text)),
            Err(error) => problem(None, format!("the message is invalid: {error}")),
        },
        Some("response") => match (id, header.id) {
            (Some(id), _) => Ok(JsonLine::Response(id)),
            (None, Some(_)) => problem(None, "`id` of the response is no id of a question".into()),
            (None, None) => problem(None, "the response has no `id`".to_owned()),
        },
        Some(other) => problem(id, format!("no type `{other}`: use `message` or `response`")),
        None => problem(id, "the object has no `type`: use `message` or `response`".to_owned()),
    }
}

fn problem(id: Option<u64>, text: String) -> Result<JsonLine, LineProblem> {
    Err(LineProblem { id, text })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_a_message_or_a_response_and_each_other_object_has_a_problem() {
        let message = r#"{"type":"message","text":"/tools\nand more"}"#;
        assert_eq!(parse(message), Ok(JsonLine::Message("/tools\nand more".to_owned())));
        let response = r#" {"type":"response","id":7,"decision":"allow"}"#;
        assert_eq!(parse(response), Ok(JsonLine::Response(7)));
        assert_eq!(parse("[1]"), Ok(JsonLine::Typed("[1]".to_owned())));
        for (line, problem) in [
            (r#"{"type":"response","id":7"#, "the line is no JSON object"),
            (r#"{"type":"message","text":"a"} x"#, "the line is no JSON object"),
            (r#"{"type":"message","text":"a","id":1}"#, "unknown field `id`"),
            (r#"{"type":"message","text":" "}"#, "the message is empty"),
            (r#"{"type":"message"}"#, "missing field `text`"),
            (r#"{"type":"response"}"#, "has no `id`"),
            (r#"{"type":"response","id":-1}"#, "is no id"),
            (r#"{"type":"response","type":"message","id":1,"text":"a"}"#, "duplicate field"),
            (r#"{"type":"interrupt"}"#, "no type `interrupt`"),
            (r#"{"type":1}"#, "the object is invalid"),
            ("{}", "has no `type`"),
        ] {
            let text = parse(line).unwrap_err().text;
            assert!(text.contains(problem), "{line}: {text}");
        }
    }

    proptest! {
        /// A damaged response therefore never reaches the model as text.
        #[test]
        fn no_line_that_starts_with_a_brace_is_typed_text(line in r#"[ \t]{0,2}\{?.{0,40}"#) {
            let is_object = line.trim_start().starts_with('{');
            match parse(&line) {
                Ok(JsonLine::Typed(text)) => prop_assert!(!is_object && text == line),
                Ok(JsonLine::Message(_) | JsonLine::Response(_)) | Err(_) => {
                    prop_assert!(is_object);
                }
            }
        }

        #[test]
        fn each_text_and_each_id_passes_through_its_object(text in r"\PC{0,40}[a-z]\n?", id: u64) {
            let message = json!({"type": "message", "text": text}).to_string();
            prop_assert_eq!(parse(&message), Ok(JsonLine::Message(text)));
            let response = json!({"type": "response", "id": id, "decision": "deny"}).to_string();
            prop_assert_eq!(parse(&response), Ok(JsonLine::Response(id)));
        }
    }
}
