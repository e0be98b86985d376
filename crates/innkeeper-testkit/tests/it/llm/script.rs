//! Scripts as JSON, what is remembered of requests, and what servers tell of themselves.

use innkeeper_testkit::{Script, ScriptedLlm, Step};
use serde_json::{Value, json};

use super::fold::Said;
use super::{path, post, talk};
use crate::remote::http::Http;

async fn get(llm: &ScriptedLlm, path: &str) -> (u16, Value) {
    let mut reply = Http::ask(llm, "GET", path, &[], None).await;
    (reply.status, reply.json().await)
}

#[tokio::test]
async fn a_script_in_json_says_what_one_in_rust_says() {
    let text = json!({
        "chunks": 3, "models": ["a"], "chat_template_caps": {"supports_tools": true},
        "steps": [
            {"answer": {
                "parts": [{"thinks": "t"}, {"says": "s"},
                    {"calls": {"name": "fs.read", "arguments": {"path": "a"}}},
                    {"raw_arguments": {"name": "x", "text": "{\"n\": 1.0}"}}],
                "usage": [10, 5], "cached_tokens": 2, "reasoning_tokens": 1,
            }, "headers": {"x-a": "b"}},
            {"answer": {"parts": [{"says": "c"}], "cut": true}},
            {"answer": {"refuses": true}},
            {"answer": {"ends_in_error": "e"}},
            {"failure": {"status": 418, "error": "no", "code": "teapot"}},
            {"raw": {"status": 201, "content_type": "text/plain", "body": "hm"}},
        ],
        "then_always": {"answer": {"parts": [{"says": "x"}]}, "breaks_off_after": 4},
    });
    let script = Script::from_json(&text.to_string()).unwrap();
    let calls = Step::think("t").says("s").calls("fs.read", json!({"path": "a"}));
    let calls = calls.raw_arguments("x", "{\"n\": 1.0}").usage(10, 5).cached_tokens(2);
    let same = Script::new([
        calls.reasoning_tokens(1).header("x-a", "b"),
        Step::say("c").cut(),
        Step::new().refuses(),
        Step::new().ends_in_error("e"),
        Step::status(418).error("no").code("teapot"),
        Step::raw(201, "text/plain", "hm"),
    ]);
    let same = same.chunks(3).models(["a"]).then_always(Step::say("x").breaks_off_after(4));
    let same = same.chat_template_caps(&json!({"supports_tools": true}));
    assert_eq!(format!("{script:?}"), format!("{same:?}"));
}

#[test]
fn what_is_wrong_with_a_script_is_told_with_its_place() {
    let problem = |text: &str| Script::from_json(text).unwrap_err();
    assert!(problem("{\"steps\": [],\n \"chunk\": 1}").contains("unknown field `chunk`"));
    assert!(problem("{\"steps\": [],\n \"chunk\": 1}").contains("line 2"));
    assert_eq!(
        problem(r#"{"steps": [{"hangs": true}, {}]}"#),
        "`steps[1]`: it is one of `answer`, `failure` and `raw`"
    );
    assert_eq!(
        problem(r#"{"steps": [{"hangs": true, "hangs_after": 1}]}"#),
        "`steps[0]`: it has two of `breaks_off_after`, `hangs_after` and `hangs`"
    );
    assert_eq!(problem(r#"{"steps": [], "chunks": 0}"#), "`chunks` is at least 1");
    let text = r#"{"steps": [], "props": {}, "chat_template_caps": {}}"#;
    assert_eq!(problem(text), "`props` and `chat_template_caps` exclude each other");
}

#[tokio::test]
async fn every_request_is_remembered_as_it_came() {
    let llm = ScriptedLlm::start(Step::say("a")).await;
    let body = talk::begin("gemini");
    let address = path("gemini", true);
    let headers = [("X-Key", "k")];
    drop(Http::ask(&llm, "POST", address, &headers, Some(&body)).await);
    drop(Http::ask(&llm, "POST", address, &[], Some(&json!({"a": 1}))).await);
    let seen = llm.requests();
    let (path, query) = address.split_once('?').unwrap();
    assert_eq!((seen[0].path.as_str(), seen[0].query.as_str()), (path, query));
    assert_eq!((seen[0].method.as_str(), seen[0].header("x-key")), ("POST", Some("k")));
    assert_eq!((&seen[0].body, &seen[0].text), (&body, &body.to_string()));
    assert_eq!((seen[0].status, seen[1].status), (Some(200), Some(500)));
}

#[tokio::test]
async fn servers_tell_their_models_and_properties() {
    let llm = ScriptedLlm::start(Step::say("a")).await;
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
    assert_eq!(Http::ask(&llm, "POST", "/v1beta/models/m:other", &[], None).await.status, 404);
}

#[tokio::test]
async fn a_call_has_the_name_by_which_its_tool_is_offered() {
    let llm = ScriptedLlm::start(Step::call("fs.read", json!({})).calls("b", json!({}))).await;
    let mut body = talk::begin("chat");
    body["tools"][0]["function"]["name"] = json!("fs-read");
    let told = post(&llm, "chat", false, &body).await.json().await;
    let names = Said::whole("chat", &told).calls.into_iter().map(|(_, name, _)| name);
    // A hyphen is as legal as it is: only what is illegal is spelled otherwise.
    assert_eq!(names.collect::<Vec<_>>(), ["fs.read", "b"]);
}

#[tokio::test]
async fn a_dropped_model_listens_no_more() {
    let llm = ScriptedLlm::start(Step::say("a")).await;
    let address = llm.origin().strip_prefix("http://").unwrap().to_owned();
    assert!(address.starts_with("127.0.0.1:"));
    drop(llm);
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[test]
#[should_panic(expected = "says nothing beside")]
fn a_failure_that_says_something_fails_where_it_is_written() {
    drop(Step::status(500).says("a"));
}
