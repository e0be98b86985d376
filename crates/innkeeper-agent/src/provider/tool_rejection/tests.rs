//! Tests of the tools that an error names.

use std::sync::Arc;

use innkeeper_toolcall::{Tool, Tools};
use serde_json::json;

use super::*;
use crate::provider::ProviderApi;

fn encoded(names: &[&str], api: ProviderApi) -> EncodedTools {
    let tools: Tools = names.iter().map(|name| Tool::new(*name, "", json!({}))).collect();
    EncodedTools::new(Arc::new(tools), api, false)
}

fn rejected(message: &str) -> Vec<String> {
    let names = ["s.good", "s.bad", "call", "s.bad_too"];
    let tools = encoded(&names, ProviderApi::OpenAiChat);
    match ToolRejection::from_error(message, "", &tools) {
        Some(ToolRejection::Tools(tools)) => tools,
        Some(ToolRejection::Strict | ToolRejection::TooMany { .. }) | None => Vec::new(),
    }
}

#[test]
fn every_provider_s_way_to_name_a_tool_is_understood() {
    for message in [
        "Invalid schema for function 's_bad': In context=('properties', 'x'), array schema missing items",
        "Invalid 'tools[1].function.description': string too long.",
        "Invalid value: 'tools[1].name'.",
        "tools.1.custom.input_schema.properties: Property keys should match pattern",
        "tools.1.input_schema: JSON schema is invalid",
        "GenerateContentRequest.tools[0].function_declarations[1].parameters.properties[x].enum[0]: cannot be empty",
        "* tools[0].functionDeclarations[1].name: [FIELD_INVALID] Invalid function name.",
        "FunctionDeclaration 's_bad' in the request exceeds the maximum allowed nesting depth.",
        "invalid JSON schema for tool s_bad, tools[1].function.parameters: `/properties/x`",
        r#"{"detail":[{"loc":["body","tools",1,"function","parameters"],"msg":"bad"}]}"#,
        "[{'loc': ('body', 'tools', 1, 'function'), 'msg': 'bad'}]",
        "The tool named \"s_bad\" has an invalid schema",
        "tool name `s_bad` is reserved",
        "Unable to submit request because `s_bad` functionDeclaration `parameters.x` schema didn't specify the schema type field.",
        "Unable to submit request because `s_bad` function declaration has no name.",
    ] {
        assert_eq!(rejected(message), ["s.bad"], "{message}");
    }
}

#[test]
fn several_named_tools_are_all_found() {
    let message = "* GenerateContentRequest.tools[0].function_declarations[1].name: bad\n\
        * GenerateContentRequest.tools[0].function_declarations[3].name: bad";
    assert_eq!(rejected(message), ["s.bad", "s.bad_too"]);
}

#[test]
fn an_error_about_something_else_names_no_tool() {
    for message in [
        "Function call is missing a thought_signature in functionCall parts",
        "Unknown parameter: 'call'.",
        "Function tools with reasoning_effort are not supported",
        "max_tools[1] is unknown",
        "of 4 tools, 1 is bad",
        "tools[17].function.name: bad",
        "messages.1.content.0.tool_use.id: bad",
        "tools: Tool names must be unique.",
        "function 's_bad_one' is unknown",
        "messages[3]: tool 's_bad' has no result",
        "No tool output found for function call call_1 (tool s_bad).",
        "An assistant message with 'tool_calls' must be followed by the result of function 's_bad'",
        "unknown field 's_bad': tools take none",
    ] {
        assert_eq!(rejected(message), [""; 0], "{message}");
    }
}

#[test]
fn the_body_is_searched_if_the_message_names_no_tool() {
    let tools = encoded(&["a", "b"], ProviderApi::OpenAiResponses);
    let body = r#"{"error": {"message": "Invalid schema.", "param": "tools[1].parameters"}}"#;
    let rejection = ToolRejection::from_error("Invalid schema.", body, &tools);
    assert_eq!(rejection, Some(ToolRejection::Tools(vec!["b".to_owned()])));
}

#[test]
fn too_many_tools_are_told_from_a_rejected_tool() {
    let names: Vec<String> = (0..150).map(|at| format!("t{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let tools = encoded(&names, ProviderApi::OpenAiChat);
    for (message, max_tools) in [
        (
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an \
             array with length 150 instead.",
            Some(128),
        ),
        ("At most 100 function declarations can be specified.", Some(100)),
        ("the temperature exceeds the limit of 100", None),
        ("too many tools", None),
    ] {
        let rejection = max_tools.map(|max_tools| ToolRejection::TooMany { max_tools });
        assert_eq!(ToolRejection::from_error(message, "", &tools), rejection, "{message}");
    }
}

#[test]
fn an_error_about_strict_mode_counts_only_if_tools_were_sent_with_it() {
    let tools = |strict| {
        let tools: Tools = [Tool::new("a", "", json!({}))].into_iter().collect();
        EncodedTools::new(Arc::new(tools), ProviderApi::Anthropic, strict)
    };
    for message in [
        "The compiled grammar is too large, which would cause performance issues.",
        "Schemas contains too many strict tools",
    ] {
        let strict = ToolRejection::from_error(message, "", &tools(true));
        assert_eq!(strict, Some(ToolRejection::Strict), "{message}");
        assert_eq!(ToolRejection::from_error(message, "", &tools(false)), None, "{message}");
    }
}
