//! Replies no client can take as they are, and one that is odd but valid.

use serde_json::{Value, json};

use super::message::Answer;

/// The kinds of `--malformed`.
pub(super) const KINDS: &[&str] = &[
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

/// Levels of nesting of `deep`: more than any recursive reader's stack holds.
const DEPTH: usize = 100_000;

/// A valid tool result that loses something in any reader that knows only what it expects.
pub(super) const ODD_RESULT: &str = concat!(
    r#"{"resultType":"complete","content":[{"type":"text","text":"caf\u00e9 😀 \u2028"},"#,
    r#"{"type":"hologram","depth":3,"layers":[1,{"two":2}]}],"#,
    r#""structuredContent":{"count":123456789012345678901234567890,"small":1.10e-7,"#,
    r#""text":"naïve"},"vendorField":{"kept":[true,null]},"_meta":{"example.org/x":1}}"#,
);

/// The bytes of a malformed reply, line ends included.
///
/// # Panics
///
/// When the kind is not one of [`KINDS`].
pub(super) fn reply(kind: &str, id: &Value, answer: &Answer) -> Vec<u8> {
    let result = match answer {
        Answer::Result(result) => result.to_string(),
        Answer::Text(text) => text.clone(),
        Answer::Error { .. } | Answer::Later => json!({"content": []}).to_string(),
    };
    let good = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
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
        "nul" => [b"\0\0\0", good.as_bytes()].concat(),
        "truncated" => good.as_bytes()[..good.len() - 8].to_vec(),
        "pretty" => serde_json::from_str::<Value>(&good)
            .map_or_else(|_| good.into_bytes(), |value| format!("{value:#}").into_bytes()),
        "batch" => format!("[{good}]").into_bytes(),
        "stringid" => format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{result}}}"#).into_bytes(),
        "floatid" => format!(r#"{{"jsonrpc":"2.0","id":{id}.0,"result":{result}}}"#).into_bytes(),
        "duplicatekey" => {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}},"result":{result}}}"#)
                .into_bytes()
        }
        "deep" => with_result(&format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH))),
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
