//! Failures in each provider's form, bodies that end too early or never, calls that cannot be read.

use innkeeper_testkit::{Script, ScriptedLlm, Step};
use serde_json::{Value, json};

use super::fold::Said;
use super::{WIRES, path, post, talk};
use crate::remote::PATIENCE;
use crate::remote::http::Http;

#[tokio::test]
async fn a_failure_has_its_status_its_headers_and_the_form_of_its_provider() {
    let words = [
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
    for (wire, body) in words {
        let step = Step::status(429).header("retry-after", "2").error("Slow down.");
        let llm = ScriptedLlm::start([step, Step::say("ok")]).await;
        let mut reply = post(&llm, wire, true, &talk::begin(wire)).await;
        assert_eq!((reply.status, reply.header("retry-after")), (429, Some("2")), "{wire}");
        assert_eq!(reply.json().await, body);
        assert_eq!(post(&llm, wire, true, &talk::begin(wire)).await.status, 200);
    }
}

#[tokio::test]
async fn a_failure_may_have_another_word() {
    let step = Step::status(400).code("context_length_exceeded").error("Too long.");
    let llm = ScriptedLlm::start(step).await;
    let told = post(&llm, "chat", false, &talk::begin("chat")).await.json().await;
    assert_eq!(told["error"]["code"], "context_length_exceeded");
    assert_eq!(told["error"]["type"], "invalid_request_error");
}

#[tokio::test]
async fn a_request_more_than_there_are_steps_is_answered_with_500_that_says_so() {
    for wire in WIRES {
        let llm = ScriptedLlm::start(Step::say("a")).await;
        assert_eq!(post(&llm, wire, true, &talk::begin(wire)).await.status, 200);
        let mut reply = post(&llm, wire, true, &talk::begin(wire)).await;
        assert_eq!(reply.status, 500);
        let told = talk::message(wire, &reply.json().await);
        assert_eq!(told, "the script has no step for request 2");
    }
}

#[tokio::test]
async fn the_last_step_may_go_on_for_ever() {
    let llm = ScriptedLlm::start(Script::new([]).then_always(Step::say("a"))).await;
    for _ in 0..3 {
        assert_eq!(post(&llm, "chat", false, &talk::begin("chat")).await.status, 200);
    }
}

#[tokio::test]
async fn a_body_breaks_off_or_hangs_after_so_many_bytes() {
    for wire in WIRES {
        for streams in [true, false] {
            let step = Step::say("Some text that is long enough.");
            let steps = [step.clone().breaks_off_after(25), step.hangs_after(25)];
            let llm = ScriptedLlm::start(Script::new(steps).chunks(10)).await;
            let (half, error) = post(&llm, wire, streams, &talk::begin(wire)).await.half().await;
            assert_eq!((half.len(), error.is_some()), (25, true), "{wire}: {half}");
            let (same, error) = post(&llm, wire, streams, &talk::begin(wire)).await.half().await;
            assert_eq!((same.len(), error.is_some()), (25, false), "{wire}: {same}");
        }
    }
}

#[tokio::test]
async fn a_step_that_hangs_never_answers() {
    let llm = ScriptedLlm::start(Step::say("a").hangs()).await;
    let body = talk::begin("chat");
    let mut http = Http::send(&llm, "POST", path("chat", false), &[], Some(&body)).await;
    let seen = llm.until(PATIENCE, |seen| seen.len() == 1).await;
    assert_eq!(seen[0].status, None);
    let head = tokio::time::timeout(std::time::Duration::from_millis(200), http.head());
    assert!(head.await.is_err());
    llm.stop().await;
    assert!(http.head().await.is_err());
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test]
async fn a_stream_ends_in_the_error_of_its_provider() {
    let ends = [
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
    let step = Step::say("So far").ends_in_error("Overloaded.");
    for (wire, end) in ends {
        let llm = ScriptedLlm::start([step.clone(), step.clone()]).await;
        let mut reply = post(&llm, wire, true, &talk::begin(wire)).await;
        let text = String::from_utf8(reply.bytes().await).unwrap();
        let last = text.trim_end().lines().last().unwrap();
        let last = last.strip_prefix("data: ").unwrap_or(last);
        assert_eq!(serde_json::from_str::<Value>(last).unwrap(), end, "{wire}: {text}");
        assert!(text.contains("So far"), "{wire}: {text}");
        assert_eq!(post(&llm, wire, false, &talk::begin(wire)).await.status, 500);
    }
    let llm = ScriptedLlm::start(step).await;
    let mut reply = post(&llm, "responses", true, &talk::begin("responses")).await;
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
    let step = Step::new().raw_arguments("fs.read", "{not json");
    let cut = step.clone().cut();
    for wire in WIRES {
        let llm = ScriptedLlm::start([step.clone(), step.clone(), cut.clone()]).await;
        let mut whole = post(&llm, wire, false, &talk::begin(wire)).await;
        let told = whole.json().await;
        let mut streamed = post(&llm, wire, true, &talk::begin(wire)).await;
        let text = String::from_utf8(streamed.bytes().await).unwrap();
        let mut short = post(&llm, wire, true, &talk::begin(wire)).await;
        let short = String::from_utf8(short.bytes().await).unwrap();
        match wire {
            "chat" | "responses" => {
                assert_eq!(Said::whole(wire, &told).calls[0].2, "{not json");
                assert_eq!(Said::streamed(wire, &text).calls[0].2, "{not json");
                assert!(!short.contains("function_call_arguments.done"), "{short}");
            }
            "anthropic" | "interactions" => {
                assert_eq!(Said::whole(wire, &told).calls[0].2, "{}");
                assert_eq!(Said::streamed(wire, &text).calls[0].2, "{not json");
                assert!(text.contains("content_block_stop") != (wire == "interactions"));
                assert!(!short.contains("content_block_stop"), "{short}");
            }
            "gemini" => {
                let candidate = &told["candidates"][0];
                assert_eq!(candidate["finishReason"], "MALFORMED_FUNCTION_CALL");
                assert_eq!(
                    candidate["finishMessage"],
                    "Malformed function call: fs_read({not json)"
                );
                assert_eq!(Said::streamed(wire, &text).finish, "MALFORMED_FUNCTION_CALL");
                assert_eq!(Said::streamed(wire, &short).finish, "MAX_TOKENS");
            }
            _ => {
                assert_eq!((whole.status, streamed.status), (500, 500));
                let words = "error parsing tool call: raw='{not json', err=";
                assert!(talk::message(wire, &told).starts_with(words), "{told}");
                assert_eq!(Said::streamed(wire, &short).finish, "length");
            }
        }
    }
}

#[tokio::test]
async fn bytes_are_sent_as_they_are() {
    let step = Step::raw(203, "text/event-stream", "data: {\"x\"\r\n\r\n").header("x-a", "b");
    let llm = ScriptedLlm::start(Script::new([step]).chunks(4)).await;
    let mut reply = post(&llm, "chat", true, &talk::begin("chat")).await;
    assert_eq!((reply.status, reply.header("x-a")), (203, Some("b")));
    assert_eq!(reply.pieces().await, [&b"data"[..], b": {\"", b"x\"\r\n", b"\r\n"]);
}
