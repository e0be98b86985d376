//! Results and errors arrive as the server sent them, regardless of size and formatting.

use std::collections::BTreeSet;
use std::time::Duration;

use innkeeper_host::{CallError, ErrorClass};
use innkeeper_testkit::Fixture;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{error_class, protocol_error};
use crate::setup::{LogCapture, TestEnv, builder, result_text};
use crate::shell_server::ShellServer;

/// The result of a server with `--odd-result`, byte for byte.
const ODD_RESULT: &str = concat!(
    r#"{"resultType":"complete","content":[{"type":"text","text":"caf\u00e9 😀 \u2028"},"#,
    r#"{"type":"hologram","depth":3,"layers":[1,{"two":2}]}],"#,
    r#""structuredContent":{"count":123456789012345678901234567890,"small":1.10e-7,"#,
    r#""text":"naïve"},"vendorField":{"kept":[true,null]},"_meta":{"example.org/x":1}}"#,
);

#[tokio::test]
async fn an_odd_result_arrives_byte_for_byte() {
    for era in ["legacy", "modern"] {
        let test_env = TestEnv::new();
        let server = test_env.fixture("odd").switch("--odd-result").with("--era", era);
        let host = test_env.start([server]).await.unwrap();
        let result = host.call_tool("odd.echo", json!({"message": ""})).await.unwrap();
        assert_eq!(result.raw().get(), ODD_RESULT);
        assert_eq!(serde_json::to_string(&result).unwrap(), ODD_RESULT);
        host.shutdown().await;
    }
}

#[tokio::test]
async fn spaces_escapes_key_order_and_numbers_of_a_result_stay_as_they_were() {
    let odd = r#"{ "z" : -0.0 , "content":[ {"type":"te\u0078t","text":"\u00e9é\/","a":1E400} ] , "a":{"b":[1.0,01e0]}}"#
        .replace("01e0", "1e0");
    let test_env = TestEnv::new();
    let shell = ShellServer { call_result: &odd, ..ShellServer::default() };
    let host = builder(test_env.config_from(&shell.config_json())).start().await.unwrap();
    let result = host.call_tool("sh.any", json!({"odd": true})).await.unwrap();
    assert_eq!(result.raw().get(), odd);
    host.shutdown().await;
}

/// Proves: TR9.6
#[tokio::test]
async fn a_result_of_ten_megabytes_arrives_whole_in_the_time_of_its_tenths() {
    const BYTES: usize = 10_000_000;
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let time_to_parse = async |bytes: usize| {
        let started_at = Instant::now();
        let result = host.call_tool("one.big", json!({"bytes": bytes})).await.unwrap();
        let parsed: Value = serde_json::from_str(result.raw().get()).unwrap();
        assert_eq!(parsed["content"][0]["text"].as_str().unwrap().len(), bytes);
        started_at.elapsed()
    };
    // The rounds interleave, and the fastest of each length counts, so that a pause of the machine
    // does not. Work in proportion to the square of the length would take ten times as long.
    let (mut whole, mut tenths) = (Duration::MAX, Duration::MAX);
    for _ in 0..4 {
        whole = whole.min(time_to_parse(BYTES).await);
        for _ in 0..4 {
            tenths = tenths.min(time_to_parse(BYTES / 10).await * 10);
        }
    }
    assert!(whole < tenths * 4, "10 MB: {whole:?}, ten results of 1 MB: {tenths:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_result_over_the_line_limit_fails_its_call_and_the_next_one_works() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let limit = 16 << 20;
    let result = host.call_tool("one.big", json!({"bytes": limit})).await;
    let error = protocol_error(result);
    assert_eq!(error.to_string(), format!("the response is longer than {limit} bytes"));
    let under = host.call_tool("one.big", json!({"bytes": limit - 1024})).await.unwrap();
    assert_eq!(result_text(&under).len(), limit - 1024);
    host.shutdown().await;
}

/// Proves: TR3.1
#[tokio::test]
async fn an_error_object_comes_with_its_code_message_and_data() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("one").with("--server-error", -32050);
    let host = test_env.start([server]).await.unwrap();
    let error = host.call_tool("one.echo", json!({"message": ""})).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Server);
    let message = error.to_string();
    assert_eq!(message, "server `one` returned an error for `echo`: failed as asked (code -32050)");
    let CallError::Server { error, .. } = error else { panic!("{error}") };
    assert_eq!(error.data.unwrap().get(), r#"{"detail":"from the fixture"}"#);
    host.shutdown().await;
}

/// Proves: TR3.1
#[tokio::test]
async fn requests_of_a_server_are_answered_under_ids_of_their_own_type() {
    let test_env = TestEnv::new();
    for (id, method, expected) in [
        (r#""p-1""#, "ping", r#""result":{}"#),
        ("-7", "ping", r#""result":{}"#),
        (r#""3""#, "ping", r#""result":{}"#),
        ("9007199254740993", "roots/list", r#""error":{"code":-32601"#),
    ] {
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
        let script = r#"IFS= read -r heard; result="{\"content\":[],\"heard\":$heard}""#;
        let on_call = format!("printf '%s\\n' '{request}'; {script}");
        let shell = ShellServer { on_call: &on_call, ..ShellServer::default() };
        let host = builder(test_env.config_from(&shell.config_json())).start().await.unwrap();
        let result = host.call_tool("sh.any", ()).await.unwrap();
        let result: Value = serde_json::from_str(result.raw().get()).unwrap();
        let received = result["heard"].to_string();
        let raw = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
        assert!(received.starts_with(&raw) && received.contains(expected), "{received}");
        host.shutdown().await;
    }
}

/// Proves: TR3.1
#[tokio::test]
async fn a_null_result_is_an_answer_and_only_its_shape_is_wrong() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("one").with("--malformed", "resultnull");
    let host = test_env.start([server]).await.unwrap();
    let protocol = protocol_error(host.call_tool("one.pid", ()).await);
    assert_eq!(protocol.to_string(), "invalid result");
    let cause = std::error::Error::source(&protocol).unwrap().to_string();
    assert!(cause.contains("null"), "{cause}");
    host.shutdown().await;
}

/// Proves: TR3.2
#[tokio::test]
async fn line_breaks_in_texts_stay_in_their_texts_in_both_directions() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let message = "one\ntwo\r\nthree\rfour\u{2028}five\u{85}\n\n";
    let result = host.call_tool("one.echo", json!({"message": message})).await.unwrap();
    assert_eq!(result_text(&result), message);
    let journal = test_env.journal();
    let sent = journal.received("tools/call")[0];
    assert_eq!(sent.message["params"]["arguments"]["message"], message);
    assert!(!sent.raw.contains(['\n', '\r']), "{}", sent.raw);
    host.shutdown().await;
}

/// Proves: TR3.2
#[tokio::test]
async fn crlf_blank_lines_and_single_bytes_make_no_difference() {
    let test_env = TestEnv::new();
    let bytes = |name: &str| test_env.fixture(name).switch("--crlf").with("--chunk", 1);
    let mut file = innkeeper_testkit::mcp_json([
        bytes("bytes"),
        bytes("slowly").with("--stall", 20),
        test_env.fixture("marked").switch("--bom").with("--chunk", 2),
    ]);
    let blank = r"printf '\n\r\n   \n\t\r\n'";
    file["servers"]["blank"] =
        ShellServer { on_call: blank, ..ShellServer::default() }.config_entry();
    let host = builder(test_env.config_from(&file)).start().await.unwrap();
    for name in ["bytes", "slowly", "marked"] {
        for message in ["plain", "Grüße, 世界 👋🏽\r\n"] {
            let tool = format!("{name}.echo");
            let result = host.call_tool(&tool, json!({"message": message})).await.unwrap();
            assert_eq!(result_text(&result), message, "{name}");
        }
    }
    for _ in 0..3 {
        host.call_tool("blank.any", ()).await.unwrap();
    }
    host.shutdown().await;
}

/// Proves: TR3.6, TR6.4, TR7.7
#[tokio::test]
async fn everything_that_is_sent_is_a_valid_message() {
    let test_env = TestEnv::new();
    let servers = [
        test_env.fixture("old").switch("--ping-client").switch("--ask-roots").with("--progress", 3),
        test_env.fixture("new").with("--era", "modern").with("--pages", 2),
    ];
    let servers = servers.map(|server| server.config_key("unavailableAfterTimeouts", 2));
    let host = test_env.start(servers).await.unwrap();
    for name in ["old", "new"] {
        host.call_tool(&format!("{name}.pid"), ()).await.unwrap();
        let short = Some(Duration::from_millis(30));
        let options = innkeeper_host::CallOptions { timeout: short, ..Default::default() };
        let late_result =
            host.call_tool_with(&format!("{name}.sleep"), json!({"ms": 999}), options).await;
        // The legacy server first waits for the response to `roots/list`; its call times out as
        // well.
        assert_eq!(error_class(late_result), ErrorClass::Timeout);
        let arguments = json!({"name": "Ada"}).as_object().unwrap().clone();
        let prompt = format!("{name}.greet");
        host.get_prompt(&prompt, &arguments, Default::default()).await.unwrap();
        let uri = format!("fx://{name}/static");
        host.read_resource(&uri, None, Default::default()).await.unwrap();
    }
    test_env.wait_for_journal(|journal| super::cancelled_ids(journal).len() == 2).await;
    host.shutdown().await;
    for name in ["old", "new"] {
        let journal = test_env.journal().for_server(name);
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
    let (test_env, log) = (TestEnv::new(), LogCapture::capture());
    let fixture = |name: &str| test_env.fixture(name);
    let servers: Vec<Fixture> = vec![
        fixture("reversed").with("--out-of-order", 5),
        fixture("doubled").switch("--dup-reply"),
        fixture("unasked").switch("--unknown-id"),
        fixture("noisy").switch("--bad-json").with("--noise", 30),
        fixture("endless").with("--endless-line", 20 << 20),
        fixture("flood").with("--log-flood", 2000),
        fixture("twice").switch("--init-twice"),
        fixture("ours").switch("--cancel-ours"),
        fixture("asking").switch("--ask-sampling").switch("--same-request-id"),
        fixture("early").switch("--early-request"),
        fixture("lying").with("--progress", 5).switch("--bad-progress"),
    ];
    let names: Vec<String> = servers.iter().map(|server| server.name().to_owned()).collect();
    let host = test_env.start(servers).await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..5 * names.len() {
        let (host, name) = (host.clone(), names[number % names.len()].clone());
        calls.spawn(async move {
            let tool = format!("{name}.add");
            let sum = json!({"a": number, "b": 1});
            let result = host.call_tool(&tool, sum).await.unwrap();
            // A server that sends a request first returns the client's response as its result.
            if name != "asking" {
                assert_eq!(result_text(&result), (number + 1).to_string(), "{name}");
            }
        });
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    let unusable = log.with_message("unusable message");
    let logged: BTreeSet<&str> =
        unusable.iter().map(|line| line["server"].as_str().unwrap()).collect();
    assert_eq!(logged, BTreeSet::from(["endless", "lying", "noisy"]));
    assert_eq!(test_env.journal().for_server("asking").responses().len(), 5);
    for name in names {
        let metrics = &host.metrics()[&*name];
        assert_eq!((metrics.success_count, metrics.request_count), (5, 5), "{name}");
    }
    host.shutdown().await;
}
