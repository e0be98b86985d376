//! Failures, by what can be done about them.

use super::super::fault;
use crate::provider::codec::cuts;
use crate::provider::{Class, Wire};

const LATER: Class = Class::Later { after: None };

fn told(message: &str) -> String {
    serde_json::json!({ "error": message }).to_string()
}

#[test]
fn a_failure_is_told_apart_by_its_message_and_its_status() {
    for (status, message, class) in [
        (400, "registry.ollama.ai/library/gemma:latest does not support tools", Class::NoTools),
        (404, "model \"llama9\" not found, try pulling it first", Class::NotFound),
        (400, "invalid options: num_ctx", Class::Request),
        (400, "the input length exceeds the context length", Class::TooLong),
        (401, "unauthorized", Class::Key),
        (429, "you've reached your hourly usage limit", LATER),
        (
            500,
            "model requires more system memory (9.1 GiB) than is available (4 GiB)",
            Class::Request,
        ),
        (500, "llama runner process has terminated: exit status 2", LATER),
        (
            500,
            "XML syntax error on line 35: element <parameter> closed by </function>",
            Class::Malformed,
        ),
        (503, "server busy, please try again", LATER),
    ] {
        let fault = fault(status, told(message).as_bytes());
        assert_eq!((fault.class, fault.message.as_str()), (class, message));
        assert_eq!(fault.written, None);
    }
    assert_eq!(fault(404, b"404 page not found").class, Class::NotFound);
    assert_eq!(fault(404, b"404 page not found").message, "404 page not found");
    assert_eq!(fault(502, b"").message, "without a word of why");
    assert_eq!(fault(400, br#"{"error":{"message":"as OpenAI"}}"#).message, "as OpenAI");
}

#[test]
fn a_call_that_ollama_could_not_read_comes_with_what_the_model_wrote() {
    let raw = "{\"path\":\"a\\n.rs\",\"content\":\"it's ', err= \\\"x\\\"\"}]";
    for (message, written) in [
        (format!("error parsing tool call: raw='{raw}', err=invalid character ']'"), Some(raw)),
        (format!("error parsing tool call: raw='{raw}', err="), Some(raw)),
        ("error parsing tool call: raw='ls -R\n'".to_owned(), Some("ls -R\n")),
        ("error parsing tool call: invalid character ']'".to_owned(), None),
    ] {
        let fault = fault(500, told(&message).as_bytes());
        assert_eq!((fault.class, fault.written.as_deref()), (Class::Malformed, written));
    }
    let odd = br#"{"error parsing tool call":"invalid character 'c'"}"#;
    assert_eq!(fault(500, odd).class, Class::Malformed);
    // A message longer than is kept has all that was written nevertheless.
    let long = "x".repeat(9000);
    let fault =
        fault(500, told(&format!("error parsing tool call: raw='{long}', err=e")).as_bytes());
    assert_eq!((fault.message.len(), fault.written), (2000, Some(long)));
}

#[test]
fn a_failure_in_the_middle_of_a_stream_has_what_was_written() {
    let start = "{\"message\":{\"content\":\"so far\"},\"done\":false}\n";
    for (message, class, written) in [
        ("an unknown error was encountered", LATER, "so far"),
        ("error parsing tool call: raw='{', err=e", Class::Malformed, "{"),
    ] {
        let error = told(message);
        for end in [format!("{error}\n"), error] {
            let fault = cuts::streamed(Wire::Ollama, &format!("{start}{end}")).unwrap_err();
            assert_eq!((fault.class, fault.message.as_str()), (class, message));
            assert_eq!(fault.written.as_deref(), Some(written));
        }
    }
    let status = format!("{start}{{\"error\":\"gone\",\"status_code\":404}}\n");
    assert_eq!(cuts::streamed(Wire::Ollama, &status).unwrap_err().class, Class::NotFound);
    let whole = cuts::whole(Wire::Ollama, &told("model \"x\" not found")).unwrap_err();
    assert_eq!(whole.class, Class::NotFound);
}
