//! Tests of scripts in JSON, the request log and server information.

use innkeeper_testkit::{Script, ScriptedLlm, ScriptedReply};
use serde_json::{Value, json};

use super::normalized_reply::NormalizedReply;
use super::{api_path, conversation, post_json};
use crate::remote::http::HttpExchange;

async fn get(llm: &ScriptedLlm, path: &str) -> (u16, Value) {
    let mut reply = HttpExchange::request(llm, "GET", path, &[], None).await;
    (reply.status, reply.json().await)
}

#[tokio::test]
async fn a_script_in_json_equals_the_same_script_in_rust() {
    let text = json!({
        "chunks": 3, "models": ["a"], "chat_template_caps": {"supports_tools": true},
        "steps": [
            {"answer": {
                "parts": [{"reasoning": "t"}, {"text": "s"},
                    {"tool_call": {"name": "fs.read", "arguments": {"path": "a"}}},
                    {"raw_tool_call": {"name": "x", "text": "{\"n\": 1.0}"}}],
                "usage": [10, 5], "cached_tokens": 2, "reasoning_tokens": 1,
            }, "headers": {"x-a": "b"}},
            {"answer": {"parts": [{"text": "c"}], "cut": true}},
            {"answer": {"refuses": true}},
            {"answer": {"ends_in_error": "e"}},
            {"failure": {"status": 418, "error": "no", "code": "teapot"}},
            {"raw": {"status": 201, "content_type": "text/plain", "body": "hm"}},
        ],
        "then_always": {"answer": {"parts": [{"text": "x"}]}, "breaks_off_after": 4},
    });
    let script = Script::from_json(&text.to_string()).unwrap();
    let calls = ScriptedReply::reasoning("t")
        .with_text("s")
        .with_tool_call("fs.read", json!({"path": "a"}));
    let calls =
        calls.with_raw_tool_call("x", "{\"n\": 1.0}").with_usage(10, 5).with_cached_tokens(2);
    let same = Script::new([
        calls.with_reasoning_tokens(1).with_header("x-a", "b"),
        ScriptedReply::text("c").truncated(),
        ScriptedReply::new().refused(),
        ScriptedReply::new().with_stream_error("e"),
        ScriptedReply::status(418).with_error_message("no").with_error_code("teapot"),
        ScriptedReply::raw(201, "text/plain", "hm"),
    ]);
    let same =
        same.chunk_bytes(3).models(["a"]).then_repeat(ScriptedReply::text("x").disconnect_after(4));
    let same = same.chat_template_caps(&json!({"supports_tools": true}));
    assert_eq!(format!("{script:?}"), format!("{same:?}"));
}

#[test]
fn an_error_in_a_script_is_reported_with_its_location() {
    let problem = |text: &str| Script::from_json(text).unwrap_err();
    assert!(problem("{\"steps\": [],\n \"chunk\": 1}").contains("unknown field `chunk`"));
    assert!(problem("{\"steps\": [],\n \"chunk\": 1}").contains("line 2"));
    assert_eq!(
        problem(r#"{"steps": [{"hangs": true}, {}]}"#),
        "`steps[1]`: exactly one of `answer`, `failure` and `raw` is required"
    );
    assert_eq!(
        problem(r#"{"steps": [{"hangs": true, "hangs_after": 1}]}"#),
        "`steps[0]`: only one of `breaks_off_after`, `hangs_after` and `hangs` is allowed"
    );
    assert_eq!(problem(r#"{"steps": [], "chunks": 0}"#), "`chunks` must be at least 1");
    let text = r#"{"steps": [], "props": {}, "chat_template_caps": {}}"#;
    assert_eq!(problem(text), "`props` and `chat_template_caps` are mutually exclusive");
}

#[tokio::test]
async fn every_request_is_remembered_as_it_came() {
    let llm = ScriptedLlm::start(ScriptedReply::text("a")).await;
    let body = conversation::first_request("gemini");
    let address = api_path("gemini", true);
    let headers = [("X-Key", "k")];
    let _ = HttpExchange::request(&llm, "POST", address, &headers, Some(&body)).await;
    let _ = HttpExchange::request(&llm, "POST", address, &[], Some(&json!({"a": 1}))).await;
    let requests = llm.requests();
    let (path, query) = address.split_once('?').unwrap();
    assert_eq!((requests[0].path.as_str(), requests[0].query.as_str()), (path, query));
    assert_eq!((requests[0].method.as_str(), requests[0].header("x-key")), ("POST", Some("k")));
    assert_eq!((&requests[0].body, &requests[0].text), (&body, &body.to_string()));
    assert_eq!((requests[0].status, requests[1].status), (Some(200), Some(500)));
}

#[tokio::test]
async fn servers_report_their_models_and_properties() {
    let llm = ScriptedLlm::start(ScriptedReply::text("a")).await;
    assert_eq!(get(&llm, "/props").await.0, 404);
    let (status, models) = get(&llm, "/v1/models").await;
    assert_eq!((status, &models["data"][0]["id"]), (200, &json!("scripted")));
    let script = Script::new([]).models(["a", "b"]);
    let llm = ScriptedLlm::start(script.chat_template_caps(&json!({"supports_tools": true}))).await;
    let (status, props) = get(&llm, "/props").await;
    assert_eq!((status, &props["chat_template_caps"]["supports_tools"]), (200, &json!(true)));
    let (_, tags) = get(&llm, "/api/tags").await;
    assert_eq!(
        (&tags["models"][0]["name"], &tags["models"][1]["model"]),
        (&json!("a"), &json!("b"))
    );
    assert_eq!(get(&llm, "/nothing").await.0, 404);
    assert_eq!(
        HttpExchange::request(&llm, "POST", "/v1beta/models/m:other", &[], None).await.status,
        404
    );
}

#[tokio::test]
async fn a_call_has_the_name_by_which_its_tool_is_offered() {
    let llm = ScriptedLlm::start(
        ScriptedReply::tool_call("fs.read", json!({})).with_tool_call("b", json!({})),
    )
    .await;
    let mut body = conversation::first_request("chat");
    body["tools"][0]["function"]["name"] = json!("fs-read");
    let response = post_json(&llm, "chat", false, &body).await.json().await;
    let names =
        NormalizedReply::from_body("chat", &response).calls.into_iter().map(|(_, name, _)| name);
    // A hyphen is valid in a name; only invalid characters are replaced.
    assert_eq!(names.collect::<Vec<_>>(), ["fs.read", "b"]);
}

#[tokio::test]
async fn a_dropped_model_listens_no_more() {
    let llm = ScriptedLlm::start(ScriptedReply::text("a")).await;
    let address = llm.origin().strip_prefix("http://").unwrap().to_owned();
    assert!(address.starts_with("127.0.0.1:"));
    drop(llm);
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[test]
#[should_panic(expected = "cannot have content")]
fn a_failure_that_says_something_fails_where_it_is_written() {
    let _ = ScriptedReply::status(500).with_text("a");
}
