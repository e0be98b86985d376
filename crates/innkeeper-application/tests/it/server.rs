//! A server in the process of the application, which keeps each line that the host sends.

use std::sync::{Arc, Mutex};

use innkeeper::{Config, Host, HostBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};

/// The lines that the server has received.
pub(crate) type Received = Arc<Mutex<Vec<String>>>;

/// Returns a host builder with the server `app`, and the lines that the server receives.
#[expect(clippy::disallowed_methods, reason = "an application spawns its own tasks")]
pub(crate) fn app_server() -> (HostBuilder, Received) {
    let received = Received::default();
    let (host_end, server_end) = duplex(1 << 16);
    tokio::spawn(serve(server_end, received.clone()));
    (Host::builder(Config::default()).connect("app", host_end), received)
}

/// Returns the only received line with this method.
pub(crate) fn request(received: &Received, method: &str) -> String {
    let lines = received.lock().unwrap();
    let is_request = |line: &&String| line.contains(&format!(r#""method":"{method}""#));
    let found: Vec<&String> = lines.iter().filter(is_request).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

/// The result of the tool `measure`, byte for byte.
pub(crate) const MEASURED: &str =
    r#"{"content":[],"structuredContent":{"metres":123456789012345678901234567890,"exact":1.50}}"#;

async fn serve(stream: DuplexStream, received: Received) {
    let (reader, mut writer) = split(stream);
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        received.lock().unwrap().push(line.clone());
        let message: Value = serde_json::from_str(&line).unwrap();
        for out in responses(&message) {
            if writer.write_all(format!("{out}\n").as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// Returns the lines that the server sends after a message.
fn responses(message: &Value) -> Vec<String> {
    let id = &message["id"];
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    match message["method"].as_str() {
        Some("initialize") => vec![result(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}},
            "serverInfo": {"name": "app", "version": "1.0.0"},
        }))],
        Some("tools/list") => vec![result(json!({"tools": [
            {"name": "measure", "inputSchema": {"type": "object"}},
            {"name": "ask", "inputSchema": {"type": "object"}},
        ]}))],
        Some("prompts/list") => vec![result(json!({"prompts": [
            {"name": "greet", "arguments": [{"name": "language"}]},
        ]}))],
        Some("resources/list") => {
            vec![result(json!({"resources": [{"uri": "app://city", "name": "city"}]}))]
        }
        Some("completion/complete") => {
            let start = message["params"]["argument"]["value"].as_str().unwrap();
            let languages = ["english", "esperanto", "french"];
            let matching: Vec<&str> =
                languages.into_iter().filter(|language| language.starts_with(start)).collect();
            vec![result(json!({"completion": {"values": matching}}))]
        }
        Some("resources/read") => vec![question(id)],
        Some("tools/call") if message["params"]["name"] == "ask" => vec![question(id)],
        Some("tools/call") => {
            vec![format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{MEASURED}}}"#)]
        }
        Some("example/notify") => vec![
            r#"{"jsonrpc":"2.0","method":"notifications/example","params":{"n":1.50}}"#.to_owned(),
            result(json!({})),
        ],
        Some("example/raw") => {
            vec![format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"n":1.50}}}}"#)]
        }
        Some(_) if !id.is_null() => vec![
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})
                .to_string(),
        ],
        Some(_) => Vec::new(),
        // The response to a question.
        None => {
            let call: Value =
                serde_json::from_str(id.as_str().unwrap().trim_start_matches("q-")).unwrap();
            let answer = &message["result"]["content"];
            let contents = json!([{"uri": "app://city", "text": answer["city"]}]);
            let result = json!({"content": [], "structuredContent": answer, "contents": contents});
            vec![json!({"jsonrpc": "2.0", "id": call, "result": result}).to_string()]
        }
    }
}

/// Returns the question for a city; the response to the request `id` follows the answer.
fn question(id: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": format!("q-{id}"), "method": "elicitation/create", "params": {
        "message": "Which city?",
        "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
    }})
    .to_string()
}
