//! Runs over each wire are recorded with real servers, and replayed from the file alone.

mod cuts;
mod headers;
mod modes;
mod questions;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use innkeeper_agent::ghost::{GhostConfig, GhostServers};
use innkeeper_agent::golden::{Exchange, Golden, ReplyRecord, mcp_ghost_recorded, replay};
use innkeeper_host::Environment;
use innkeeper_host::config::Secret;
use innkeeper_testkit::{Fixture, Script, ScriptedLlm, ScriptedReply, fixture, mcp_json};
use serde_json::{Value, json};

/// The providers with a model for each of the six APIs, and the path of the base URL.
const WIRES: [(&str, &str, &str); 6] = [
    ("openai", "gpt-6.1-terra", "/v1"),
    ("openai-compatible", "m-1", "/v1"),
    ("anthropic", "claude-opus-5-5", ""),
    ("gemini", "gemini-3.8-flash", ""),
    ("gemini", "gemini-4-argon", ""),
    ("ollama", "qwen3:8b", ""),
];

const KEY: &str = "sk-planted-7Qw3zR9tYb5Nc1Xe";
const TOKEN: &str = "planted/token+Zx8\"Kd2=Lm";
const PASSWORD: &str = "planted-pass-4Hj6";

fn config(wire: (&str, &str, &str), llm: &ScriptedLlm, server: Fixture) -> GhostConfig {
    let (provider, model, path) = wire;
    let address = llm.origin().replace("http://", &format!("http://user-planted-Rt5k:{PASSWORD}@"));
    let servers = GhostServers::Config(mcp_json([server.env("TOKEN", TOKEN)]));
    let mut config =
        GhostConfig::new(servers, "Be brief.", provider, "Add.", Environment::from_process());
    config.settings.calls.timeout = Some(Duration::from_secs(20));
    config.model.key = Some(Secret::new(KEY));
    config.model.model = Some(model.to_owned());
    config.model.base_url = Some(format!("{address}{path}"));
    config
}

/// Returns a secret in the forms in which tools and models repeat it.
fn forms(secret: &str) -> Vec<String> {
    let percent: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let escaped: String = secret.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let shifted = STANDARD.encode(format!("x:{secret}"));
    vec![
        secret.to_owned(),
        STANDARD.encode(secret),
        URL_SAFE_NO_PAD.encode(secret),
        shifted,
        percent,
        escaped,
        hex,
    ]
}

/// Returns the longest parts of each form that do not depend on neighbours.
fn traces(secret: &str) -> Vec<String> {
    let inner = |text: &String| text.get(2..text.len() - 4).unwrap_or_default().to_owned();
    forms(secret).iter().map(inner).collect()
}

async fn record(
    wire: (&str, &str, &str),
    replies: impl IntoIterator<Item = ScriptedReply>,
    chunk_bytes: usize,
) -> Golden {
    let script = Script::new(replies).chunk_bytes(chunk_bytes);
    let llm = ScriptedLlm::start(script).await;
    let (result, golden) = mcp_ghost_recorded(config(wire, &llm, fixture("fx")), "planted").await;
    golden.unwrap_or_else(|error| panic!("{wire:?}: {error:?}: {result:?}"))
}

fn output(golden: &Golden) -> Value {
    serde_json::from_str(golden.golden_output.get()).unwrap()
}

/// Proves: G63, G64
#[tokio::test]
async fn a_run_over_each_wire_replays_without_its_server_and_its_model() {
    for wire in WIRES {
        let replies = [
            ScriptedReply::text("Both.")
                .with_tool_call("fx.add", json!({"a": 1, "b": 2}))
                .with_tool_call("fx.echo", json!({"message": "ä 1.50"})),
            ScriptedReply::text("They are 3 and ä."),
        ];
        let golden = record(wire, replies, 7).await;
        let text = golden.to_json().unwrap();
        let read = Golden::from_json(&text).unwrap();
        let replayed = replay(&read).await.unwrap().require_complete().unwrap();
        assert_eq!(replayed.golden.to_json().unwrap(), text, "{wire:?}");
        let output = output(&read);
        assert_eq!(output["final_result"], "They are 3 and ä.", "{wire:?}");
        assert_eq!(output["tool_chain"][0]["result"]["structuredContent"]["sum"], 3, "{wire:?}");
        assert_eq!(read.provider_responses.len(), 2, "{wire:?}");
    }
}

/// Proves: G63
#[tokio::test]
async fn no_secret_of_a_run_is_in_its_recording_in_any_form() {
    let secrets = [KEY, TOKEN, PASSWORD, "user-planted-Rt5k"];
    for (number, wire) in WIRES.into_iter().enumerate() {
        // The first wire gets all forms, the others some.
        for at in (0..forms(KEY).len()).filter(|at| number == 0 || at % 3 == number % 3) {
            let all = secrets.iter().map(|secret| forms(secret)[at].clone());
            let all = all.collect::<Vec<_>>().join(" and ");
            let replies = [
                ScriptedReply::text(format!("I send {all}."))
                    .with_tool_call("fx.echo", json!({"message": format!("got {all}")})),
                ScriptedReply::text(format!("The tool said {all}.")),
            ];
            let golden = record(wire, replies, 5).await;
            assert_no_trace(&golden, &secrets, &format!("{wire:?}, form {at}"));
            let output = output(&golden).to_string();
            assert!(output.contains("[redacted:"), "{wire:?}, form {at}: {output}");
        }
    }
}

/// Checks that no form of a secret is in the file or in what its events say together.
#[track_caller]
fn assert_no_trace(golden: &Golden, secrets: &[&str], run: &str) {
    let text = golden.to_json().unwrap();
    let body: String = golden.provider_responses.iter().map(body_text).collect();
    for trace in secrets.iter().flat_map(|secret| traces(secret)) {
        assert!(!text.contains(&trace), "{run}: {trace} in {text}");
        assert!(!body.contains(&trace), "{run}: {trace} in {body}");
    }
}

/// Returns the text that a response streams, without the events around it.
fn body_text(exchange: &Exchange) -> String {
    let ReplyRecord::Http(response) = &exchange.response else {
        return String::new();
    };
    let bytes: Vec<u8> =
        response.chunks.iter().flat_map(|chunk| chunk.data.to_bytes().unwrap().to_vec()).collect();
    let body = String::from_utf8(bytes).unwrap();
    let mut text = String::new();
    for line in body.lines() {
        let json = line.strip_prefix("data:").unwrap_or(line);
        if let Ok(event) = serde_json::from_str::<Value>(json) {
            collect_strings(&event, &mut text);
        }
    }
    text
}

fn collect_strings(value: &Value, text: &mut String) {
    match value {
        Value::String(string) if string.len() < 60 => text.push_str(string),
        Value::Array(items) => items.iter().for_each(|item| collect_strings(item, text)),
        Value::Object(members) => {
            for key in ["content", "delta", "text", "partial_json", "arguments", "thinking"] {
                if let Some(member) = members.get(key) {
                    collect_strings(member, text);
                }
            }
            for (key, member) in members {
                if member.is_object() || member.is_array() {
                    let is_seen = ["content", "delta", "arguments"].contains(&key.as_str());
                    if !is_seen {
                        collect_strings(member, text);
                    }
                }
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[tokio::test]
async fn a_server_that_does_not_start_is_part_of_the_replayed_result() {
    let llm = ScriptedLlm::start(Script::new([ScriptedReply::text("No tools.")])).await;
    let broken = fixture("broken").config_key("command", "no-such-program-a1");
    let mut config = config(WIRES[2], &llm, fixture("fx"));
    config.servers = GhostServers::Config(mcp_json([fixture("fx"), broken]));
    let (result, golden) = mcp_ghost_recorded(config, "broken").await;
    let golden = golden.unwrap();
    assert_eq!((result.servers_connected, golden.servers.len()), (1, 2));
    assert!(!golden.servers["broken"].ready);
    let replayed = replay(&golden).await.unwrap();
    assert_eq!(replayed.result.result.errors, result.result.errors);
}

#[tokio::test]
async fn the_configuration_is_recorded_as_written_without_literal_secrets() {
    let llm = ScriptedLlm::start(Script::new([ScriptedReply::text("Hi.")])).await;
    let mut config = config(WIRES[2], &llm, fixture("fx"));
    let mut servers = mcp_json([fixture("fx").env("TOKEN", TOKEN)]);
    servers["servers"]["fx"]["env"]["OTHER"] = json!("${PATH}");
    config.servers = GhostServers::Config(servers);
    let golden = mcp_ghost_recorded(config, "written").await.1.unwrap();
    let written: Value = serde_json::from_str(golden.input.server_config.get()).unwrap();
    let env = &written["mcpServers"]["fx"]["env"];
    assert_eq!(env["OTHER"], "${PATH}");
    assert_eq!(env["TOKEN"], "[redacted:env:TOKEN]");
}
