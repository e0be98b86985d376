//! Tests of request parameters other than messages.

use std::sync::Arc;

use innkeeper_toolcall::{Tool, Tools};
use serde_json::json;

use super::{CLAUDE, body, request_with, text, tools, user};
use crate::provider::codec::request_encoding::encode_request;
use crate::provider::{
    Capabilities, ConstraintSupport, OutputConstraint, ProviderApi, Request, ToolChoice,
};

/// Proves: G32
#[test]
fn a_request_has_the_path_the_version_and_always_max_tokens() {
    let request = Request { system: "be kind".to_owned(), ..request_with(vec![user("hi")]) };
    let capabilities = Capabilities::for_model(ProviderApi::Anthropic, CLAUDE);
    let outgoing = encode_request(ProviderApi::Anthropic, &request, CLAUDE, &capabilities, true);
    assert_eq!(outgoing.path, "/v1/messages");
    assert_eq!(outgoing.headers, [("anthropic-version", "2026-10-21".to_owned())]);
    let expected = json!({
        "model": CLAUDE,
        "max_tokens": 4096,
        "system": "be kind",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "stream": true,
    });
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&outgoing.body).unwrap(), expected);
    let longer = Request { max_tokens: Some(9), ..request_with(vec![user("hi")]) };
    assert_eq!(body(&longer, CLAUDE)["max_tokens"], 9);
    assert_eq!(body(&longer, "other-server")["max_tokens"], 9);
}

#[test]
fn a_request_is_cached_only_if_requested_and_supported() {
    let plain = Request {
        system: "be kind".to_owned(),
        tools: tools(&["look", "see"]),
        ..request_with(vec![user("hi")])
    };
    let cached = Request { prompt_caching: true, ..plain.clone() };
    let cache_control = json!({"type": "ephemeral"});
    // A cache breakpoint covers everything before it, and tools precede the system text.
    let mut expected = body(&plain, CLAUDE);
    assert!(!expected.to_string().contains("cache_control"));
    expected["system"] =
        json!([{"type": "text", "text": "be kind", "cache_control": cache_control}]);
    expected["cache_control"] = cache_control.clone();
    assert_eq!(body(&cached, CLAUDE), expected);
    let blank = |request: &Request| Request { system: " ".to_owned(), ..request.clone() };
    let mut expected = body(&blank(&plain), CLAUDE);
    expected["tools"][1]["cache_control"] = cache_control.clone();
    expected["cache_control"] = cache_control.clone();
    assert_eq!(body(&blank(&cached), CLAUDE), expected);
    let nothing = Request { tools: Arc::default(), ..blank(&cached) };
    let plain_nothing = Request { prompt_caching: false, ..nothing.clone() };
    let mut expected = body(&plain_nothing, CLAUDE);
    expected["cache_control"] = cache_control;
    assert_eq!(body(&nothing, CLAUDE), expected);
    assert_eq!(text(&cached, "qwen3-coder"), text(&plain, "qwen3-coder"));
}

#[test]
fn a_server_that_knows_the_version_of_2023_gets_that() {
    let capabilities = Capabilities::for_model(ProviderApi::Anthropic, "qwen3-coder");
    let outgoing = encode_request(
        ProviderApi::Anthropic,
        &request_with(vec![user("hi")]),
        "qwen3-coder",
        &capabilities,
        false,
    );
    assert_eq!(outgoing.headers, [("anthropic-version", "2023-06-01".to_owned())]);
}

#[test]
fn bound_thinking_is_dropped_where_the_messages_before_it_changed() {
    let capabilities = Capabilities::for_model(ProviderApi::Anthropic, "claude-fable-5-2");
    let outgoing = encode_request(
        ProviderApi::Anthropic,
        &request_with(vec![user("hi")]),
        "claude-fable-5-2",
        &capabilities,
        false,
    );
    let beta = ("anthropic-beta", "thinking-binding-controls-2026-08-01".to_owned());
    assert!(outgoing.headers.contains(&beta));
    let sent: serde_json::Value = serde_json::from_slice(&outgoing.body).unwrap();
    let expected =
        json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
    assert_eq!(sent["thinking"], expected);
    assert_eq!(body(&request_with(vec![user("hi")]), CLAUDE).get("thinking"), None);
}

#[test]
fn parameters_that_a_model_refuses_are_not_sent() {
    let request = Request {
        temperature: Some(0.5),
        stop_sequences: vec!["END".to_owned(), "\n\n".to_owned(), String::new()],
        tool_choice: ToolChoice::Required,
        tools: tools(&["look"]),
        ..request_with(vec![user("hi")])
    };
    let claude = body(&request, CLAUDE);
    assert_eq!(claude.get("temperature"), None);
    assert_eq!(claude["stop_sequences"], json!(["END"]));
    assert_eq!(claude["tool_choice"], json!({"type": "any"}));
    assert_eq!(body(&request, "claude-fable-5-1").get("tool_choice"), None);
    assert_eq!(body(&request, "other")["temperature"], 0.5);
    let hot = Request { temperature: Some(1.7), ..request.clone() };
    assert_eq!(body(&hot, "other")["temperature"], 1.0);
    let none = Capabilities::default();
    let sent = encode_request(ProviderApi::Anthropic, &request, CLAUDE, &none, false).body;
    let sent: serde_json::Value = serde_json::from_slice(&sent).unwrap();
    for name in ["temperature", "stop_sequences", "tool_choice", "tools", "output_config"] {
        assert_eq!(sent.get(name), None, "{name}");
    }
}

#[test]
fn a_choice_is_sent_only_beside_tools() {
    for (tool_choice, expected) in [
        (ToolChoice::Auto, None),
        (ToolChoice::None, Some(json!({"type": "none"}))),
        (ToolChoice::Required, Some(json!({"type": "any"}))),
    ] {
        let with =
            Request { tool_choice, tools: tools(&["look"]), ..request_with(vec![user("hi")]) };
        assert_eq!(body(&with, CLAUDE).get("tool_choice"), expected.as_ref());
        let without = Request { tools: Arc::default(), ..with };
        assert_eq!(body(&without, CLAUDE).get("tool_choice"), None);
    }
}

/// Proves: G32, G35
#[test]
fn tools_have_names_that_are_taken_and_the_schema_under_input_schema() {
    let long = format!("server.{}", "x".repeat(300));
    let names = ["files.read", "files_read", "wetter.für.münchen", "a b", &long, "ok-1"];
    let request = Request { tools: tools(&names), ..request_with(vec![user("hi")]) };
    let sent = body(&request, CLAUDE);
    let sent = sent["tools"].as_array().unwrap();
    let mut unique = std::collections::HashSet::new();
    for tool in sent {
        let name = tool["name"].as_str().unwrap();
        assert!((1..=64).contains(&name.len()), "{name}");
        assert!(name.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it)), "{name}");
        assert!(unique.insert(name.to_owned()), "{name} is there twice");
        assert_eq!(tool["input_schema"]["type"], "object");
        assert_eq!(tool["description"], "about it");
        assert_eq!(tool["strict"], true);
    }
    assert_eq!(sent.len(), names.len());
}

#[test]
fn a_tool_is_strict_only_where_its_schema_and_the_model_can_be() {
    let recursive = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
    let plain = json!({"type": "object", "properties": {}});
    let tools: Tools =
        [Tool::new("deep", "", recursive), Tool::new("flat", "", plain)].into_iter().collect();
    let request = Request { tools: Arc::new(tools), ..request_with(vec![user("hi")]) };
    let sent = body(&request, CLAUDE);
    assert_eq!((sent["tools"][0].get("strict"), &sent["tools"][1]["strict"]), (None, &json!(true)));
    assert_eq!(sent["tools"][0].get("description"), None);
    assert!(!text(&request, "other").contains("strict"));
}

#[test]
fn an_output_schema_is_sent_only_where_it_is_supported() {
    let capabilities = Capabilities {
        constraints: ConstraintSupport { json_schema: true, ..ConstraintSupport::default() },
        ..Capabilities::for_model(ProviderApi::Anthropic, CLAUDE)
    };
    let object = json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}});
    let sent = |schema: &serde_json::Value| {
        let output_constraint = Some(OutputConstraint::JsonSchema(schema.clone()));
        let request = Request { output_constraint, ..request_with(vec![user("hi")]) };
        let body =
            encode_request(ProviderApi::Anthropic, &request, CLAUDE, &capabilities, false).body;
        serde_json::from_slice::<serde_json::Value>(&body).unwrap().get("output_config").cloned()
    };
    let config = sent(&object).unwrap();
    assert_eq!(config["format"]["type"], "json_schema");
    assert_eq!(config["format"]["schema"]["additionalProperties"], false);
    assert_eq!(config["format"]["schema"]["properties"]["a"]["type"], "string");
    assert_eq!(sent(&json!({"type": "array"})), None);
    let renamed = json!({"type": "object", "properties": {"$top": {"type": "string"}}});
    assert_eq!(sent(&renamed), None);
    let union = json!({"anyOf": [object, {"type": "object", "properties": {"b": {}}}]});
    assert_eq!(sent(&union), None);
    let request = Request {
        output_constraint: Some(OutputConstraint::JsonSchema(object)),
        ..request_with(vec![user("hi")])
    };
    assert_eq!(body(&request, CLAUDE).get("output_config"), None);
}
