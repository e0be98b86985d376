//! Tests of streams: complete content in every chunk size.

use innkeeper_testkit::{Script, ScriptedLlm, ScriptedReply};
use serde_json::{Value, json};

use super::normalized_reply::NormalizedReply;
use super::{APIS, api_path, conversation, post_json};
use crate::remote::http::HttpExchange;

fn replies() -> Vec<ScriptedReply> {
    let calls = ScriptedReply::reasoning("Näher hinsehen.")
        .with_tool_call("fs.read", json!({"path": "ä\"\\b", "n": 1}));
    vec![
        calls
            .with_tool_call("fs.write", json!({}))
            .with_usage(100, 20)
            .with_cached_tokens(30)
            .with_reasoning_tokens(5),
        ScriptedReply::reasoning("Enough thought of.")
            .with_text("All of it, to the last 🦀.")
            .with_usage(9, 8),
        ScriptedReply::text("It is cut her").truncated().with_usage(7, 6),
        ScriptedReply::text("No.").refused().with_usage(5, 4),
        ScriptedReply::new().with_usage(3, 0),
    ]
}

async fn stream_chunks(api: &str, script: Script) -> Vec<String> {
    let llm = ScriptedLlm::start(script).await;
    let mut bodies = Vec::new();
    for _ in replies() {
        let mut reply = post_json(&llm, api, true, &conversation::first_request(api)).await;
        assert_eq!(reply.status, 200);
        bodies.push(String::from_utf8(reply.bytes().await).unwrap());
    }
    bodies
}

#[tokio::test]
async fn every_form_streams_what_it_says_whole() {
    for api in APIS {
        let llm = ScriptedLlm::start(replies()).await;
        for body in stream_chunks(api, Script::new(replies())).await {
            let mut reply = post_json(&llm, api, false, &conversation::first_request(api)).await;
            assert_eq!(reply.header("content-type"), Some("application/json"));
            let expected = NormalizedReply::from_body(api, &reply.json().await);
            assert_eq!(NormalizedReply::from_stream(api, &body), expected, "{api}: {body}");
        }
    }
}

#[tokio::test]
async fn an_answer_has_its_reasoning_its_calls_and_its_usage() {
    for api in APIS {
        let llm = ScriptedLlm::start(replies()).await;
        let mut reply = post_json(&llm, api, false, &conversation::first_request(api)).await;
        let normalized = NormalizedReply::from_body(api, &reply.json().await);
        assert_eq!(normalized.reasoning, "Näher hinsehen.", "{api}");
        let calls: Vec<(&str, Value)> = normalized
            .calls
            .iter()
            .map(|(_, name, text)| (name.as_str(), serde_json::from_str(text).unwrap()))
            .collect();
        let first = json!({"path": "ä\"\\b", "n": 1});
        // The offered tool has another spelling; the other tool is not offered.
        assert_eq!(calls, [("fs_read", first), ("fs.write", json!({}))], "{api}");
        assert_ne!(normalized.calls[0].0, normalized.calls[1].0, "{api}");
        let (read_as, read, written_as, output) = match api {
            "chat" => ("prompt_tokens", 100, "completion_tokens", 20),
            "responses" => ("input_tokens", 100, "output_tokens", 20),
            "anthropic" => ("input_tokens", 70, "output_tokens", 20),
            "gemini" => ("promptTokenCount", 100, "candidatesTokenCount", 15),
            "interactions" => ("total_input_tokens", 100, "total_output_tokens", 15),
            _ => ("prompt_eval_count", 100, "eval_count", 20),
        };
        let usage = &normalized.usage;
        assert_eq!((&usage[read_as], &usage[written_as]), (&json!(read), &json!(output)), "{api}");
    }
}

#[tokio::test]
async fn an_answer_ends_with_the_provider_s_finish_reason() {
    let cases = [
        ("chat", ["tool_calls", "stop", "length", "content_filter"]),
        (
            "responses",
            ["completed", "completed", "incompletemax_output_tokens", "incompletecontent_filter"],
        ),
        ("anthropic", ["tool_use", "end_turn", "max_tokens", "refusal"]),
        ("gemini", ["STOP", "STOP", "MAX_TOKENS", "SAFETY"]),
        ("interactions", ["requires_action", "completed", "incomplete", "failed"]),
        ("ollama", ["stop", "stop", "length", "stop"]),
    ];
    for (api, expected) in cases {
        let bodies = stream_chunks(api, Script::new(replies())).await;
        let finish_reasons =
            bodies.iter().map(|body| NormalizedReply::from_stream(api, body).finish);
        assert_eq!(finish_reasons.take(4).collect::<Vec<_>>(), expected, "{api}");
    }
}

#[tokio::test]
async fn a_stream_comes_in_the_pieces_that_the_script_asks_for() {
    for api in APIS {
        let llm = ScriptedLlm::start(Script::new(replies()).chunk_bytes(1)).await;
        let mut reply = post_json(&llm, api, true, &conversation::first_request(api)).await;
        let chunks = reply.body_chunks().await;
        assert!(chunks.len() > 100 && chunks.iter().all(|piece| piece.len() == 1), "{api}");
        let bytes = stream_chunks(api, Script::new(replies())).await;
        assert_eq!(chunks.concat(), bytes[0].as_bytes(), "{api}");

        let llm = ScriptedLlm::start(Script::new(replies()).chunk_bytes(usize::MAX)).await;
        let mut reply = post_json(&llm, api, true, &conversation::first_request(api)).await;
        assert_eq!(reply.body_chunks().await, [bytes[0].as_bytes()], "{api}");
    }
}

#[tokio::test]
async fn numbers_too_big_for_any_type_are_sent_as_they_were_written() {
    let text = r#"{"n":123456789012345678901234567890,"x":1.00}"#;
    for api in APIS {
        for streams in [false, true] {
            let llm =
                ScriptedLlm::start(ScriptedReply::new().with_raw_tool_call("fs.read", text)).await;
            let mut reply = post_json(&llm, api, streams, &conversation::first_request(api)).await;
            let body = String::from_utf8(reply.bytes().await).unwrap();
            if streams && !matches!(api, "gemini" | "ollama") {
                assert_eq!(NormalizedReply::from_stream(api, &body).calls[0].2, text, "{api}");
            } else {
                let quoted = json!(text).to_string();
                assert!(body.contains(text) || body.contains(&quoted), "{api}: {body}");
            }
        }
    }
}

#[tokio::test]
async fn ollama_streams_by_default() {
    let llm = ScriptedLlm::start([ScriptedReply::text("a"), ScriptedReply::text("b")]).await;
    for (api, form) in [("ollama", "application/x-ndjson"), ("chat", "application/json")] {
        let body = conversation::first_request(api);
        let reply =
            HttpExchange::request(&llm, "POST", api_path(api, false), &[], Some(&body)).await;
        assert_eq!(reply.header("content-type"), Some(form));
    }
}
