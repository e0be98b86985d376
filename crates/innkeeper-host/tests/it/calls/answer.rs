//! What comes back is what the server sent, however large, odd or oddly written.

use std::time::Duration;

use innkeeper_host::{CallError, ErrorClass};
use innkeeper_testkit::Fixture;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{class, protocol_fault};
use crate::setup::{Scene, builder, text};
use crate::shell::Shell;

/// What a server started with `--odd-result` answers, byte for byte.
const ODD: &str = concat!(
    r#"{"resultType":"complete","content":[{"type":"text","text":"caf\u00e9 😀 \u2028"},"#,
    r#"{"type":"hologram","depth":3,"layers":[1,{"two":2}]}],"#,
    r#""structuredContent":{"count":123456789012345678901234567890,"small":1.10e-7,"#,
    r#""text":"naïve"},"vendorField":{"kept":[true,null]},"_meta":{"example.org/x":1}}"#,
);

#[tokio::test]
async fn an_odd_result_arrives_byte_for_byte() {
    for era in ["legacy", "modern"] {
        let scene = Scene::new();
        let server = scene.fx("odd").switch("--odd-result").with("--era", era);
        let host = scene.start([server]).await.unwrap();
        let result = host.call_tool("odd.echo", json!({"message": ""})).await.unwrap();
        assert_eq!(result.raw().get(), ODD);
        assert_eq!(serde_json::to_string(&result).unwrap(), ODD);
        host.shutdown().await;
    }
}

#[tokio::test]
async fn spaces_escapes_key_order_and_numbers_of_a_result_stay_as_they_were() {
    let odd = r#"{ "z" : -0.0 , "content":[ {"type":"te\u0078t","text":"\u00e9é\/","a":1E400} ] , "a":{"b":[1.0,01e0]}}"#
        .replace("01e0", "1e0");
    let scene = Scene::new();
    let shell = Shell { result: &odd, ..Shell::default() };
    let host = builder(scene.config_of(&shell.file())).start().await.unwrap();
    let result = host.call_tool("sh.any", json!({"odd": true})).await.unwrap();
    assert_eq!(result.raw().get(), odd);
    host.shutdown().await;
}

/// Proves: TR9.6
#[tokio::test]
async fn a_result_of_ten_megabytes_arrives_whole_and_is_parsed_in_no_time() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    let began = Instant::now();
    let result = host.call_tool("one.big", json!({"bytes": 10_000_000})).await.unwrap();
    let received = began.elapsed();
    let parsing = Instant::now();
    let parsed: Value = serde_json::from_str(result.raw().get()).unwrap();
    let parsed_in = parsing.elapsed();
    println!("10 MB result: received in {received:?}, parsed in {parsed_in:?}");
    assert_eq!(parsed["content"][0]["text"].as_str().unwrap().len(), 10_000_000);
    assert!(received + parsed_in < Duration::from_secs(5), "{received:?} {parsed_in:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_result_over_the_line_limit_fails_its_call_and_the_next_one_works() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    let limit = 16 << 20;
    let over = host.call_tool("one.big", json!({"bytes": limit})).await;
    let fault = protocol_fault(over);
    assert_eq!(fault.to_string(), format!("the answer is longer than {limit} bytes"));
    let under = host.call_tool("one.big", json!({"bytes": limit - 1024})).await.unwrap();
    assert_eq!(text(&under).len(), limit - 1024);
    host.shutdown().await;
}

/// Proves: TR3.1
#[tokio::test]
async fn an_error_object_comes_with_its_code_message_and_data() {
    let scene = Scene::new();
    let server = scene.fx("one").with("--server-error", -32050);
    let host = scene.start([server]).await.unwrap();
    let error = host.call_tool("one.echo", json!({"message": ""})).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Server);
    let message = error.to_string();
    assert_eq!(message, "server `one` refused `echo`: failed as asked (code -32050)");
    let CallError::Server { error, .. } = error else { panic!("{error}") };
    assert_eq!(error.data.unwrap().get(), r#"{"detail":"from the fixture"}"#);
    host.shutdown().await;
}

/// Proves: TR3.1
#[tokio::test]
async fn requests_of_a_server_are_answered_under_ids_of_their_own_type() {
    let scene = Scene::new();
    for (id, method, answer) in [
        (r#""p-1""#, "ping", r#""result":{}"#),
        ("-7", "ping", r#""result":{}"#),
        (r#""3""#, "ping", r#""result":{}"#),
        ("9007199254740993", "roots/list", r#""error":{"code":-32601"#),
    ] {
        let ask = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
        let heard = r#"IFS= read -r heard; result="{\"content\":[],\"heard\":$heard}""#;
        let on_call = format!("printf '%s\\n' '{ask}'; {heard}");
        let shell = Shell { on_call: &on_call, ..Shell::default() };
        let host = builder(scene.config_of(&shell.file())).start().await.unwrap();
        let result = host.call_tool("sh.any", ()).await.unwrap();
        let result: Value = serde_json::from_str(result.raw().get()).unwrap();
        let heard = result["heard"].to_string();
        let raw = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
        assert!(heard.starts_with(&raw) && heard.contains(answer), "{heard}");
        host.shutdown().await;
    }
}

/// Proves: TR3.1
#[tokio::test]
async fn a_null_result_is_an_answer_and_only_its_shape_is_wrong() {
    let scene = Scene::new();
    let server = scene.fx("one").with("--malformed", "resultnull");
    let host = scene.start([server]).await.unwrap();
    let fault = protocol_fault(host.call_tool("one.pid", ()).await);
    assert_eq!(fault.to_string(), "the result has the wrong shape");
    let shape = std::error::Error::source(&fault).unwrap().to_string();
    assert!(shape.contains("null"), "{shape}");
    host.shutdown().await;
}

/// Proves: TR3.2
#[tokio::test]
async fn line_breaks_in_texts_stay_in_their_texts_in_both_directions() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    let message = "one\ntwo\r\nthree\rfour\u{2028}five\u{85}\n\n";
    let result = host.call_tool("one.echo", json!({"message": message})).await.unwrap();
    assert_eq!(text(&result), message);
    let journal = scene.journal();
    let sent = journal.received("tools/call")[0];
    assert_eq!(sent.message["params"]["arguments"]["message"], message);
    assert!(!sent.raw.contains(['\n', '\r']), "{}", sent.raw);
    host.shutdown().await;
}

/// Proves: TR3.2
#[tokio::test]
async fn crlf_blank_lines_and_single_bytes_make_no_difference() {
    let scene = Scene::new();
    let bytes = |name: &str| scene.fx(name).switch("--crlf").with("--chunk", 1);
    let mut file = innkeeper_testkit::mcp_json([
        bytes("bytes"),
        bytes("slowly").with("--stall", 20),
        scene.fx("marked").switch("--bom").with("--chunk", 2),
    ]);
    let blank = r"printf '\n\r\n   \n\t\r\n'";
    file["servers"]["blank"] = Shell { on_call: blank, ..Shell::default() }.entry();
    let host = builder(scene.config_of(&file)).start().await.unwrap();
    for name in ["bytes", "slowly", "marked"] {
        for message in ["plain", "Grüße, 世界 👋🏽\r\n"] {
            let tool = format!("{name}.echo");
            let result = host.call_tool(&tool, json!({"message": message})).await.unwrap();
            assert_eq!(text(&result), message, "{name}");
        }
    }
    for _ in 0..3 {
        host.call_tool("blank.any", ()).await.unwrap();
    }
    host.shutdown().await;
}

/// Proves: TR3.6, TR6.4
#[tokio::test]
async fn everything_that_is_sent_is_a_valid_message() {
    let scene = Scene::new();
    let servers = [
        scene.fx("old").switch("--ping-client").switch("--ask-roots").with("--progress", 3),
        scene.fx("new").with("--era", "modern").with("--pages", 2),
    ];
    let servers = servers.map(|server| server.key("unavailableAfterTimeouts", 2));
    let host = scene.start(servers).await.unwrap();
    for name in ["old", "new"] {
        host.call_tool(&format!("{name}.pid"), ()).await.unwrap();
        let short = Some(Duration::from_millis(30));
        let options = innkeeper_host::CallOptions { timeout: short, ..Default::default() };
        let late = host.call_tool_with(&format!("{name}.sleep"), json!({"ms": 999}), options).await;
        // The older one waits for the roots first, and is then late all the same.
        assert_eq!(class(late), ErrorClass::Timeout);
        let arguments = json!({"name": "Ada"}).as_object().unwrap().clone();
        let prompt = format!("{name}.greet");
        host.get_prompt(&prompt, &arguments, Default::default()).await.unwrap();
        let uri = format!("fx://{name}/static");
        host.read_resource(&uri, None, Default::default()).await.unwrap();
    }
    scene.journal_until(|journal| super::cancelled(journal).len() == 2).await;
    host.shutdown().await;
    for name in ["old", "new"] {
        let journal = scene.journal().of(name);
        let mut ids = std::collections::HashSet::new();
        let received = journal.events("recv");
        assert!(received.len() >= 8, "{received:#?}");
        for entry in received {
            let message = entry.message.as_object().expect("an object on one line");
            let keys: Vec<&str> = message.keys().map(String::as_str).collect();
            assert_eq!(message["jsonrpc"], "2.0", "{message:?}");
            match keys[1..] {
                ["id", "method", "params"] => {
                    assert!(message["method"].is_string() && message["params"].is_object());
                    assert!(ids.insert(message["id"].as_u64().unwrap()), "used twice: {message:?}");
                }
                ["method"] => {}
                ["method", "params"] => assert!(message["params"].is_object()),
                ["id", "result"] => assert!(message["result"].is_object()),
                ["id", "error"] => assert!(message["error"]["code"].is_i64()),
                _ => panic!("{message:?}"),
            }
        }
    }
}

/// Proves: TR3.3
#[tokio::test]
async fn answers_out_of_order_doubled_unasked_and_among_noise_find_their_calls() {
    let scene = Scene::new();
    let fx = |name: &str| scene.fx(name);
    let servers: Vec<Fixture> = vec![
        fx("reversed").with("--out-of-order", 5),
        fx("doubled").switch("--dup-reply"),
        fx("unasked").switch("--unknown-id"),
        fx("noisy").switch("--bad-json").with("--noise", 30),
        fx("endless").with("--endless-line", 20 << 20),
        fx("flood").with("--log-flood", 2000),
        fx("twice").switch("--init-twice"),
        fx("ours").switch("--cancel-ours"),
        fx("asking").switch("--ask-sampling").switch("--same-request-id"),
        fx("early").switch("--early-request"),
        fx("lying").with("--progress", 5).switch("--bad-progress"),
    ];
    let names: Vec<String> = servers.iter().map(|server| server.name().to_owned()).collect();
    let host = scene.start(servers).await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..5 * names.len() {
        let (host, name) = (host.clone(), names[number % names.len()].clone());
        calls.spawn(async move {
            let tool = format!("{name}.add");
            let sum = json!({"a": number, "b": 1});
            let result = host.call_tool(&tool, sum).await.unwrap();
            // A server that asks us first answers with what we said.
            if name != "asking" {
                assert_eq!(text(&result), (number + 1).to_string(), "{name}");
            }
        });
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    for name in names {
        let metrics = &host.metrics()[&*name];
        assert_eq!((metrics.success_count, metrics.request_count), (5, 5), "{name}");
    }
    host.shutdown().await;
}
