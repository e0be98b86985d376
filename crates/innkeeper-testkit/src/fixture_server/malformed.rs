//! Malformed replies, and an unusual valid reply.

use serde_json::{Value, json};

use super::message::Response;

/// The values of `--malformed`.
pub(super) const MALFORMED_KINDS: &[&str] = &[
    "nojsonrpc",
    "both",
    "neither",
    "notutf8",
    "nul",
    "truncated",
    "pretty",
    "batch",
    "stringid",
    "floatid",
    "duplicatekey",
    "deep",
    "wrongcase",
    "resultnull",
    "notobject",
    "wrongtypes",
    "nobody",
    "bignumber",
];

/// Nesting depth of `deep`: more than the stack of any recursive parser.
const NESTING_DEPTH: usize = 100_000;

/// A valid tool result that loses data in a parser that keeps only known members.
pub(super) const UNEXPECTED_RESULT: &str = concat!(
    r#"{"resultType":"complete","content":[{"type":"text","text":"caf\u00e9 😀 \u2028"},"#,
    r#"{"type":"hologram","depth":3,"layers":[1,{"two":2}]}],"#,
    r#""structuredContent":{"count":123456789012345678901234567890,"small":1.10e-7,"#,
    r#""text":"naïve"},"vendorField":{"kept":[true,null]},"_meta":{"example.org/x":1}}"#,
);

/// Returns the bytes of a malformed reply, with line ends.
///
/// # Panics
///
/// If `kind` is not in [`MALFORMED_KINDS`].
pub(super) fn malformed_reply(kind: &str, id: &Value, response: &Response) -> Vec<u8> {
    let result = match response {
        Response::Result(result) => result.to_string(),
        Response::Text(text) => text.clone(),
        Response::Error { .. } | Response::Deferred => json!({"content": []}).to_string(),
    };
    let valid = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    let with_result =
        |result: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into_bytes();
    let mut bytes = match kind {
        "nojsonrpc" => format!(r#"{{"id":{id},"result":{result}}}"#).into_bytes(),
        "both" => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{result},"error":{{"code":-1,"message":"m"}}}}"#
        )
        .into_bytes(),
        "neither" => format!(r#"{{"jsonrpc":"2.0","id":{id}}}"#).into_bytes(),
        "notutf8" => {
            let mut bytes = with_result(r#"{"content":[{"type":"text","text":"?"}]}"#);
            if let Some(byte) = bytes.iter_mut().find(|byte| **byte == b'?') {
                *byte = 0xff;
            }
            bytes
        }
        "nul" => [b"\0\0\0", valid.as_bytes()].concat(),
        "truncated" => valid.as_bytes()[..valid.len() - 8].to_vec(),
        "pretty" => serde_json::from_str::<Value>(&valid)
            .map_or_else(|_| valid.into_bytes(), |value| format!("{value:#}").into_bytes()),
        "batch" => format!("[{valid}]").into_bytes(),
        "stringid" => format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{result}}}"#).into_bytes(),
        "floatid" => format!(r#"{{"jsonrpc":"2.0","id":{id}.0,"result":{result}}}"#).into_bytes(),
        "duplicatekey" => {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}},"result":{result}}}"#)
                .into_bytes()
        }
        "deep" => {
            with_result(&format!("{}{}", "[".repeat(NESTING_DEPTH), "]".repeat(NESTING_DEPTH)))
        }
        "wrongcase" => format!(r#"{{"JSONRPC":"2.0","ID":{id},"Result":{result}}}"#).into_bytes(),
        "resultnull" => with_result("null"),
        "notobject" => with_result(r#""a string""#),
        "wrongtypes" => with_result(r#"{"content":"no array","isError":"no boolean"}"#),
        "nobody" => br#"{"jsonrpc":"2.0","result":{"content":[{"type":"text","te"#.to_vec(),
        "bignumber" => with_result(r#"{"content":[],"structuredContent":{"n":1e999}}"#),
        other => unreachable!("`{other}` is not a kind of the table"),
    };
    bytes.push(b'\n');
    bytes
}
