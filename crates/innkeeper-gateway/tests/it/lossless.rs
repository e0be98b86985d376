//! Arguments, results and answers of clients pass byte for byte.

use innkeeper_testkit::Journal;
use serde_json::{Value, json};

use crate::setup::{META_CAPABILITIES, META_VERSION, TestClient, TestEnv};

const ERAS: [&str; 2] = ["legacy", "modern"];

/// Numbers that a tree of JSON values does not write as they were read.
const NUMBERS: &[&str] = &[
    "123456789012345678901234567890",
    "-99999999999999999999",
    "18446744073709551616",
    "9223372036854775808",
    "-9223372036854775809",
    "9007199254740993",
    "-0",
    "-0.0",
    "0.0",
    "-0e0",
    "0e-0",
    "1.0",
    "1.00",
    "10e-1",
    "1e0",
    "1E5",
    "1e+5",
    "1E+05",
    "1e-05",
    "1e400",
    "-1e400",
    "1E+400",
    "1e-400",
    "2e308",
    "1.7976931348623157e308",
    "5e-324",
    "2e-324",
    "0.1000000000000000055511151231257827",
    "3.141592653589793238462643383279502884197",
    "0.30000000000000004",
    "1e99999999999999999999",
];

/// Strings with escapes, surrogates and characters that programs treat differently.
const STRINGS: &[&str] = &[
    r#""\u0041""#,
    r#""\u00e9""#,
    r#""\u00E9""#,
    r#""\/""#,
    r#""/""#,
    r#""\b\f\n\r\t\"\\""#,
    r#""\u0008\u000c\u000a""#,
    r#""\u0000""#,
    r#""\u001f\u007f""#,
    r#""\ud800""#,
    r#""\udc00""#,
    r#""\ud83d""#,
    r#""a\ud83db""#,
    r#""\udc00\ud800""#,
    r#""\ud800\ud800""#,
    r#""\uD83D\uDE00""#,
    r#""\ud83d\ude00""#,
    r#""\ud83d\u0041""#,
    r#""\u2028\u2029""#,
    r#""\ufeff""#,
    r#""\uffff""#,
    r#""\\ud800""#,
    "\"\u{1F600}\"",
    "\"\u{2028}\u{2029}\"",
    "\"\u{feff}\"",
    "\"\u{ffff}\u{10ffff}\"",
    "\"\u{7f}\u{80}\u{9f}\"",
    "\"\u{202e}abc\"",
    "\"e\u{301}\u{e9}\"",
    "\"\u{1F468}\u{200d}\u{1F469}\u{200d}\u{1F467}\"",
    "\"\u{e000}\"",
    r#""\u001b""#,
    "\"\"",
    "\" \"",
    r#""</script>""#,
    r#""1e400""#,
];

/// Objects and arrays with unusual names, members and white space.
const CONTAINERS: &[&str] = &[
    r#"{"":1}"#,
    r#"{"":{"":{"":0}}}"#,
    r#"{" ":1,"  ":2}"#,
    r#"{"a\u0000b":1}"#,
    r#"{"\u0061b":1,"ac":2}"#,
    r#"{"A":1,"a":2}"#,
    r#"{"b":1,"a":2,"0":3}"#,
    r#"{"__proto__":{"x":1},"constructor":{}}"#,
    r#"{"\ud800":1}"#,
    r#"{"\u00e9":1,"e\u0301":2}"#,
    r#"{"jsonrpc":"1.0","id":99,"method":"x","params":[]}"#,
    r#"{"result":{},"error":null}"#,
    r#"{"_meta":{"progressToken":1e400}}"#,
    r#"{"resultType":"input_required"}"#,
    r#"{"content":[{"type":"hologram"}],"isError":1}"#,
    r##"{"$ref":"#","$schema":1}"##,
    r#"{"nextCursor":"","ttlMs":-0.0}"#,
    "{ }",
    "[ ]",
    "{\t}",
    "[\r]",
    "[ 1 ,\t2\r,3 ]",
    "{ \"a\" :\t[ ] , \"b\"\r: { } }",
    "[[],[[]],[[],{}]]",
    "[null,true,false]",
    "[1e400,-0.0,123456789012345678901234567890]",
    "[\"\\ud800\",{\"\\udc00\":1E400}]",
];

/// All odd values, also deep and long ones.
fn odd_values() -> Vec<String> {
    let all = [NUMBERS, STRINGS, CONTAINERS].concat();
    let mut all: Vec<String> = all.into_iter().map(ToOwned::to_owned).collect();
    all.extend([
        "[".repeat(60) + &"]".repeat(60),
        "{\"a\":".repeat(60) + "1e400" + &"}".repeat(60),
        format!("[{}]", vec!["-0.0"; 10_000].join(" , ")),
        format!("\"{}\"", "\\ud800".repeat(10_000)),
        "9".repeat(10_000),
        format!("0.{}1", "0".repeat(1_000)),
    ]);
    all
}

/// Returns the end of a result with this value. A line break between tokens becomes a space, because
/// a message is a line.
fn sent(value: &str) -> String {
    format!("\"sent\":{value}}}").replace('\r', " ")
}

/// Calls the tool with these bytes as arguments, and returns the bytes of the response.
async fn call(client: &mut TestClient, era: &str, arguments: &str) -> String {
    let id = client.next_id();
    let meta = json!({ META_VERSION: "2026-07-28", META_CAPABILITIES: {} });
    let meta = if era == "modern" { format!(",\"_meta\":{meta}") } else { String::new() };
    client
        .send_line(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\
             \"params\":{{\"name\":\"a.echo\",\"arguments\":{arguments}{meta}}}}}"
        ))
        .await;
    client.line().await
}

#[tokio::test]
async fn odd_arguments_and_results_pass_byte_for_byte_between_the_eras() {
    let values = odd_values();
    assert!(values.len() >= 100, "{}", values.len());
    let tools = json!([{ "name": "echo", "inputSchema": { "type": "object" } }]);
    for server_era in ERAS {
        let test_env = TestEnv::new();
        let server = test_env.fixture("a").with("--era", server_era).with("--tools", &tools);
        let gateway = test_env.gateway([server.switch("--verbatim")]).await;
        for client_era in ERAS {
            let mut client = match client_era {
                "legacy" => gateway.initialized("local", json!({})).await,
                _ => gateway.modern("local", json!({})),
            };
            for value in &values {
                let eras = format!("{client_era} client, {server_era} server");
                let arguments = format!("{{\"value\":{value}}}");
                let response = call(&mut client, client_era, &arguments).await;
                // The host sends no arguments that it cannot check.
                let is_checkable = serde_json::from_str::<Value>(&arguments).is_ok();
                let expected = sent(&arguments);
                let expected = if is_checkable { &expected } else { "cannot be checked" };
                assert!(response.contains(expected), "{eras}: {arguments}: {response}");
                // The server also sends values that no client sent.
                let arguments = json!({ "result": value }).to_string();
                let response = call(&mut client, client_era, &arguments).await;
                let expected = sent(value);
                assert!(response.contains(&expected), "{eras}: {value}: {response}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_of_a_client_reaches_the_server_with_all_its_digits() {
    const LONG: &str =
        r#"{"action":"accept","content":{"colour":123456789012345678901234567890.10}}"#;
    for (server_era, client_era) in
        [("legacy", "legacy"), ("modern", "legacy"), ("legacy", "modern")]
    {
        let test_env = TestEnv::new();
        let journal = test_env.path().join("journal");
        let server = test_env.fixture("a").with("--era", server_era).switch("--ask-elicit");
        let gateway = test_env.gateway([server.journal(&journal)]).await;
        let params = json!({ "name": "a.echo", "arguments": { "message": "hi" } });
        let capabilities = json!({ "elicitation": {} });
        let response = if client_era == "legacy" {
            let mut client = gateway.initialized("local", capabilities).await;
            let call = client.start("tools/call", params).await;
            let id = client.received("elicitation/create").await["id"].clone();
            client
                .send_line(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{LONG}}}"))
                .await;
            client.response(&call).await
        } else {
            let mut client = gateway.modern("local", capabilities.clone());
            let mut required = client.request("tools/call", params.clone()).await;
            let key = required["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
            let mut params = params;
            params["_meta"] =
                json!({ META_VERSION: "2026-07-28", META_CAPABILITIES: capabilities });
            params["requestState"] = required["requestState"].take();
            params["inputResponses"] = json!({ key: "answer" });
            let id = client.next_id();
            let params = params.to_string().replace("\"answer\"", LONG);
            client
                .send_line(&format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}"
                ))
                .await;
            client.response(&id).await
        };
        assert!(response["result"]["content"].is_array(), "{response}");
        let received = Journal::read_unchecked(&journal);
        let has_answer = received.entries.iter().any(|entry| entry.raw.contains(LONG));
        assert!(has_answer, "{client_era} client, {server_era} server: {received:?}");
    }
}
