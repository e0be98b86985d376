//! Tests of the redaction: goldens with secrets in every place and encoding.

mod encodings;
mod places;
mod properties;
mod streams;

use serde_json::{Value, json};

use super::{FindCredentials, KnownSecret, RedactError, SecretPlace, redact};
use crate::file::{Chunk, ChunkData, Golden, ReplyRecord, ToolRecord};

/// A detector that knows one format, `ghp_` with 20 letters and digits.
fn find_tokens(text: &str) -> Vec<&str> {
    let starts = text.match_indices("ghp_").map(|(at, _)| &text[at..]);
    let token = |rest: &'_ str| {
        let is_random = |c: &char| c.is_ascii_alphanumeric();
        4 + rest[4..].chars().take_while(is_random).take(20).count()
    };
    starts.map(|rest| &rest[..token(rest)]).filter(|token| token.len() == 24).collect()
}

/// A detector of passwords by the name of their member.
fn find_passwords(text: &str) -> Vec<&str> {
    let values = text.split("password: ").skip(1);
    values.filter_map(|rest| rest.split_whitespace().next()).collect()
}

fn find_nothing(_: &str) -> Vec<&str> {
    Vec::new()
}

fn anywhere(name: &str, value: &str) -> KnownSecret {
    KnownSecret { name: name.into(), value: value.into(), place: SecretPlace::Anywhere }
}

fn of_url(value: &str) -> KnownSecret {
    KnownSecret { name: "api-key".into(), value: value.into(), place: SecretPlace::BaseUrl }
}

/// A golden with `text` wherever a text can be.
fn golden_text(text: &str, server_config: &Value) -> String {
    let object = json!({"text": text, "list": [1.50, text], (text): true});
    let definition = json!({"name": "t", "description": text, "inputSchema": {"default": text}});
    let raw = serde_json::value::to_raw_value(&definition).unwrap();
    let exchange = |response: &Value| {
        json!({
            "iteration": 1,
            "request": {"method": "POST", "url": format!("http://h/{text}"), "body": object,
                "begin_ms": 123_456_789},
            "response": response,
            "token_usage": object,
        })
    };
    let failed = json!({"failed": {"ms": 1, "kind": text, "message": text}});
    let http = json!({"http": {
        "status": 200, "ms": 1, "headers": [["x-header", text]],
        "chunks": [{"ms": 1, "text": object.to_string()}], "end": failed,
    }});
    let call = |outcome: &Value| {
        json!({"name": text, "arguments": object, "round": 1, "begin_ms": 1, "end_ms": 2,
            "progress": [{"ms": 1, "params": object}], "outcome": outcome})
    };
    let approval = |answer: &Value| json!({"tool": text, "arguments": object, "answer": answer});
    json!({
        "version": 1, "test_name": text, "origin": "recorded", "recorded_at": "2026-11-29T05:40:00Z",
        "program": text,
        "input": {
            "server_config": server_config, "system_prompt": text, "provider": text, "model": text,
            "api": text, "base_url": format!("http://h/{text}"), "user_prompt": text,
            "further_prompts": [text],
            "namespace": text, "streaming": true, "settings": object,
        },
        "golden_output": object,
        "provider_responses": [exchange(&http), exchange(&failed), exchange(&json!({"silent": {}}))],
        "servers": {(text): {"ready": false, "reason": text}},
        "tools": [{"name": text, "hash": ToolRecord::hash_of(&raw), "from_server": true,
            "refusal": text, "definition": definition}],
        "offers": [{"requests": 0, "calls": 0, "tools": [0],
            "unavailable": [{"name": text, "server": text, "reason": text}]}],
        "tool_calls": [
            call(&json!({"result": object})), call(&json!({"tool_error": object})),
            call(&json!({"failed": {"class": text, "message": text}})),
            call(&json!({"abandoned": {}})),
        ],
        "approvals": [
            approval(&json!({"approved": {}})), approval(&json!({"changed": object})),
            approval(&json!({"denied": text})),
        ],
        "questions": [{"server": text, "method": text, "params": object, "answer": object}],
        "jitter": [0.123_456_789],
    })
    .to_string()
}

fn golden(text: &str, server_config: &Value) -> Golden {
    Golden::from_json(&golden_text(text, server_config)).unwrap()
}

/// A golden with little else than one response with these chunks.
fn golden_with_chunks(chunks: &[&[u8]]) -> Golden {
    let mut golden = golden("", &json!({}));
    golden.provider_responses.truncate(1);
    golden.offers.clear();
    golden.tool_calls.clear();
    golden.approvals.clear();
    golden.questions.clear();
    let ReplyRecord::Http(response) = &mut golden.provider_responses[0].response else {
        panic!("the first response is one");
    };
    response.chunks = chunks
        .iter()
        .zip(10..)
        .map(|(bytes, ms)| Chunk { ms, data: ChunkData::from_bytes(bytes) })
        .collect();
    golden
}

fn chunks(golden: &Golden) -> &[Chunk] {
    match &golden.provider_responses[0].response {
        ReplyRecord::Http(response) => &response.chunks,
        ReplyRecord::Failed { .. } | ReplyRecord::Silent {} => &[],
    }
}

fn body(golden: &Golden) -> String {
    let bytes: Vec<u8> = chunks(golden)
        .iter()
        .flat_map(|chunk| chunk.data.to_bytes().unwrap().into_owned())
        .collect();
    String::from_utf8(bytes).unwrap()
}

fn redact_body(text: &str, secrets: &[KnownSecret]) -> Result<String, RedactError> {
    let mut golden = golden_with_chunks(&[text.as_bytes()]);
    redact(&mut golden, secrets, find_nothing)?;
    Ok(body(&golden))
}

fn redact_with(mut golden: Golden, secrets: &[KnownSecret], find: FindCredentials) -> Golden {
    redact(&mut golden, secrets, find).unwrap();
    golden
}

fn json_text(golden: &Golden) -> String {
    serde_json::to_string(golden).unwrap()
}
