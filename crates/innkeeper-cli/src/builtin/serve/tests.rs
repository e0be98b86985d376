//! Tests of the server loop with a real notes file.

use std::io::{Cursor, Read};

use serde_json::Value;

use super::*;
use crate::builtin::NotesService;

struct OneByteReader<'a>(&'a [u8]);

impl Read for OneByteReader<'_> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
        space[0] = *first;
        self.0 = rest;
        Ok(1)
    }
}

fn serve_input(input: impl Read) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let notes = NotesService::open(&dir.path().join("notes")).unwrap();
    let mut output = Vec::new();
    run(notes, input, &mut output).unwrap();
    let text = String::from_utf8(output).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn initialize(revision: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}"}}}}"#
    ) + "\n"
}

#[test]
fn requests_are_answered_in_order_and_notifications_are_not() {
    let input = initialize("2025-11-25")
        + r#"{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":"a","method":"ping"}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}
{"jsonrpc":"2.0","id":9,"result":{}}

{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    for responses in
        [serve_input(Cursor::new(&input)), serve_input(OneByteReader(input.as_bytes()))]
    {
        let ids: Vec<_> = responses.iter().map(|response| response["id"].to_string()).collect();
        assert_eq!(ids, ["0", "\"a\"", "2"]);
        assert_eq!(responses[2]["result"]["tools"].as_array().unwrap().len(), 5);
    }
}

#[test]
fn a_malformed_line_gets_an_error_where_its_id_can_be_read_and_the_next_one_works() {
    let input = initialize("2025-11-25")
        + "npm WARN noise\n{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":}\n{\"id\":6,\"method\":\"ping\"}\n"
        + r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    let responses = serve_input(Cursor::new(input));
    let codes: Vec<_> = responses[1..]
        .iter()
        .map(|response| (&response["id"], &response["error"]["code"]))
        .collect();
    let expected = serde_json::json!([[5, -32700], [6, -32600], [7, null]]);
    assert_eq!(serde_json::json!(codes), expected);
}

#[test]
fn a_line_over_the_limit_is_rejected_by_its_id_and_the_next_one_works() {
    let head = r#"{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":""#;
    let padding = io::repeat(b'x').take(DEFAULT_MAX_LINE_BYTES as u64);
    let tail = "\n{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"ping\"}\n";
    let responses = serve_input(Cursor::new(head).chain(padding).chain(Cursor::new(tail)));
    assert_eq!(responses[0]["error"]["code"], -32600);
    assert_eq!(responses[1]["id"], 6);
}

#[test]
fn a_batch_is_answered_with_a_batch_where_the_revision_has_them() {
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2,"method":"no"}]
[{"jsonrpc":"2.0","method":"x"}]
"#;
    let responses = serve_input(Cursor::new(initialize("2025-03-26") + batch));
    assert_eq!(responses.len(), 2);
    let responses = responses[1].as_array().unwrap();
    assert_eq!(responses.len(), 2);
    assert_eq!(responses[1]["error"]["code"], -32601);
    let responses = serve_input(Cursor::new(initialize("2025-06-18") + batch));
    assert_eq!(responses.len(), 3);
    assert!(responses[1..].iter().all(|answer| answer["error"]["code"] == -32600));
}

#[test]
fn an_error_with_data_is_one_line_with_its_id() {
    let request = r#"{"jsonrpc":"2.0","id":"x","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2030-01-01"}}}"#;
    let responses = serve_input(Cursor::new(request));
    assert_eq!(responses[0]["id"], "x");
    assert_eq!(responses[0]["error"]["data"]["supported"][0], "2026-07-28");
}

#[test]
fn a_closed_output_ends_the_server_without_an_error() {
    struct ClosedPipe;
    impl Write for ClosedPipe {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let notes = NotesService::open(&dir.path().join("notes")).unwrap();
    run(notes, Cursor::new(initialize("2025-11-25")), ClosedPipe).unwrap();
}
