//! Tests of error responses, truncated and stalled bodies, invalid calls.

use innkeeper_testkit::{Script, ScriptedLlm, ScriptedReply};
use serde_json::{Value, json};

use super::normalized_reply::NormalizedReply;
use super::{APIS, api_path, conversation, post_json};
use crate::remote::RECEIVE_TIMEOUT;
use crate::remote::http::HttpExchange;

#[tokio::test]
async fn a_failure_has_its_status_its_headers_and_the_form_of_its_provider() {
    let cases = [
        (
            "chat",
            json!({"error": {"message": "Slow down.", "type": "requests", "param": null,
            "code": "rate_limit_exceeded"}}),
        ),
        (
            "responses",
            json!({"error": {"message": "Slow down.", "type": "requests", "param": null,
            "code": "rate_limit_exceeded"}}),
        ),
        (
            "anthropic",
            json!({"type": "error", "request_id": "req_scripted",
            "error": {"type": "rate_limit_error", "message": "Slow down."}}),
        ),
        (
            "gemini",
            json!({"error": {"code": 429, "message": "Slow down.",
            "status": "RESOURCE_EXHAUSTED"}}),
        ),
        (
            "interactions",
            json!({"error": {"code": "too_many_requests",
            "message": "Slow down."}}),
        ),
        ("ollama", json!({"error": "Slow down."})),
    ];
    for (api, body) in cases {
        let scripted = ScriptedReply::status(429)
            .with_header("retry-after", "2")
            .with_error_message("Slow down.");
        let llm = ScriptedLlm::start([scripted, ScriptedReply::text("ok")]).await;
        let mut reply = post_json(&llm, api, true, &conversation::first_request(api)).await;
        assert_eq!((reply.status, reply.header("retry-after")), (429, Some("2")), "{api}");
        assert_eq!(reply.json().await, body);
        assert_eq!(post_json(&llm, api, true, &conversation::first_request(api)).await.status, 200);
    }
}

#[tokio::test]
async fn a_failure_may_have_another_error_code() {
    let scripted = ScriptedReply::status(400)
        .with_error_code("context_length_exceeded")
        .with_error_message("Too long.");
    let llm = ScriptedLlm::start(scripted).await;
    let response =
        post_json(&llm, "chat", false, &conversation::first_request("chat")).await.json().await;
    assert_eq!(response["error"]["code"], "context_length_exceeded");
    assert_eq!(response["error"]["type"], "invalid_request_error");
}

#[tokio::test]
async fn a_request_beyond_the_script_is_answered_with_500_that_says_so() {
    for api in APIS {
        let llm = ScriptedLlm::start(ScriptedReply::text("a")).await;
        assert_eq!(post_json(&llm, api, true, &conversation::first_request(api)).await.status, 200);
        let mut reply = post_json(&llm, api, true, &conversation::first_request(api)).await;
        assert_eq!(reply.status, 500);
        let message = conversation::error_message(api, &reply.json().await);
        assert_eq!(message, "the script has no step for request 2");
    }
}

#[tokio::test]
async fn the_last_reply_may_repeat_for_ever() {
    let llm = ScriptedLlm::start(Script::new([]).then_repeat(ScriptedReply::text("a"))).await;
    for _ in 0..3 {
        assert_eq!(
            post_json(&llm, "chat", false, &conversation::first_request("chat")).await.status,
            200
        );
    }
}

#[tokio::test]
async fn a_body_breaks_off_or_hangs_after_so_many_bytes() {
    for api in APIS {
        for streams in [true, false] {
            let scripted = ScriptedReply::text("Some text that is long enough.");
            let scripted_replies =
                [scripted.clone().disconnect_after(25), scripted.stall_after(25)];
            let llm = ScriptedLlm::start(Script::new(scripted_replies).chunk_bytes(10)).await;
            let (half, error) = post_json(&llm, api, streams, &conversation::first_request(api))
                .await
                .partial_body()
                .await;
            assert_eq!((half.len(), error.is_some()), (25, true), "{api}: {half}");
            let (same, error) = post_json(&llm, api, streams, &conversation::first_request(api))
                .await
                .partial_body()
                .await;
            assert_eq!((same.len(), error.is_some()), (25, false), "{api}: {same}");
        }
    }
}

#[tokio::test]
async fn a_reply_that_hangs_is_never_sent() {
    let llm = ScriptedLlm::start(ScriptedReply::text("a").never_responds()).await;
    let body = conversation::first_request("chat");
    let mut http =
        HttpExchange::send(&llm, "POST", api_path("chat", false), &[], Some(&body)).await;
    let requests = llm.wait_for(RECEIVE_TIMEOUT, |requests| requests.len() == 1).await;
    assert_eq!(requests[0].status, None);
    let head = tokio::time::timeout(std::time::Duration::from_millis(200), http.read_head());
    assert!(head.await.is_err());
    llm.stop().await;
    assert!(http.read_head().await.is_err());
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test]
async fn a_stream_ends_in_the_error_of_its_provider() {
    let cases = [
        (
            "chat",
            json!({"error": {"message": "Overloaded.", "type": "server_error",
            "param": null, "code": null}}),
        ),
        (
            "anthropic",
            json!({"type": "error",
            "error": {"type": "overloaded_error", "message": "Overloaded."}}),
        ),
        (
            "gemini",
            json!({"error": {"code": 503, "message": "Overloaded.",
            "status": "UNAVAILABLE"}}),
        ),
        (
            "interactions",
            json!({"event_type": "error",
            "error": {"code": "internal_error", "message": "Overloaded."}}),
        ),
        ("ollama", json!({"error": "Overloaded."})),
    ];
    let scripted = ScriptedReply::text("So far").with_stream_error("Overloaded.");
    for (api, expected) in cases {
        let llm = ScriptedLlm::start([scripted.clone(), scripted.clone()]).await;
        let mut reply = post_json(&llm, api, true, &conversation::first_request(api)).await;
        let text = String::from_utf8(reply.bytes().await).unwrap();
        let last = text.trim_end().lines().last().unwrap();
        let last = last.strip_prefix("data: ").unwrap_or(last);
        assert_eq!(serde_json::from_str::<Value>(last).unwrap(), expected, "{api}: {text}");
        assert!(text.contains("So far"), "{api}: {text}");
        assert_eq!(
            post_json(&llm, api, false, &conversation::first_request(api)).await.status,
            500
        );
    }
    let llm = ScriptedLlm::start(scripted).await;
    let mut reply =
        post_json(&llm, "responses", true, &conversation::first_request("responses")).await;
    let text = String::from_utf8(reply.bytes().await).unwrap();
    let last = text.trim_end().lines().last().unwrap().strip_prefix("data: ").unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(
        (&last["type"], &last["response"]["status"]),
        (&json!("response.failed"), &json!("failed"))
    );
    assert_eq!(last["response"]["error"]["message"], "Overloaded.");
}

#[tokio::test]
async fn a_call_that_cannot_be_read_is_sent_as_its_provider_would() {
    let scripted = ScriptedReply::new().with_raw_tool_call("fs.read", "{not json");
    let truncated = scripted.clone().truncated();
    for api in APIS {
        let llm = ScriptedLlm::start([scripted.clone(), scripted.clone(), truncated.clone()]).await;
        let mut reply = post_json(&llm, api, false, &conversation::first_request(api)).await;
        let body = reply.json().await;
        let mut streamed = post_json(&llm, api, true, &conversation::first_request(api)).await;
        let text = String::from_utf8(streamed.bytes().await).unwrap();
        let mut short = post_json(&llm, api, true, &conversation::first_request(api)).await;
        let short = String::from_utf8(short.bytes().await).unwrap();
        match api {
            "chat" | "responses" => {
                assert_eq!(NormalizedReply::from_body(api, &body).calls[0].2, "{not json");
                assert_eq!(NormalizedReply::from_stream(api, &text).calls[0].2, "{not json");
                assert!(!short.contains("function_call_arguments.done"), "{short}");
            }
            "anthropic" | "interactions" => {
                assert_eq!(NormalizedReply::from_body(api, &body).calls[0].2, "{}");
                assert_eq!(NormalizedReply::from_stream(api, &text).calls[0].2, "{not json");
                assert!(text.contains("content_block_stop") != (api == "interactions"));
                assert!(!short.contains("content_block_stop"), "{short}");
            }
            "gemini" => {
                let candidate = &body["candidates"][0];
                assert_eq!(candidate["finishReason"], "MALFORMED_FUNCTION_CALL");
                assert_eq!(
                    candidate["finishMessage"],
                    "Malformed function call: fs_read({not json)"
                );
                assert_eq!(
                    NormalizedReply::from_stream(api, &text).finish,
                    "MALFORMED_FUNCTION_CALL"
                );
                assert_eq!(NormalizedReply::from_stream(api, &short).finish, "MAX_TOKENS");
            }
            _ => {
                assert_eq!((reply.status, streamed.status), (500, 500));
                let message = "error parsing tool call: raw='{not json', err=";
                assert!(conversation::error_message(api, &body).starts_with(message), "{body}");
                assert_eq!(NormalizedReply::from_stream(api, &short).finish, "length");
            }
        }
    }
}

#[tokio::test]
async fn bytes_are_sent_as_they_are() {
    let scripted = ScriptedReply::raw(203, "text/event-stream", "data: {\"x\"\r\n\r\n")
        .with_header("x-a", "b");
    let llm = ScriptedLlm::start(Script::new([scripted]).chunk_bytes(4)).await;
    let mut reply = post_json(&llm, "chat", true, &conversation::first_request("chat")).await;
    assert_eq!((reply.status, reply.header("x-a")), (203, Some("b")));
    assert_eq!(reply.body_chunks().await, [&b"data"[..], b": {\"", b"x\"\r\n", b"\r\n"]);
}
