//! Tests of the error kinds of each server.

use super::*;
use crate::provider::ProviderApi;
use crate::provider::codec;

const RETRY_LATER: LlmErrorKind = LlmErrorKind::RetryLater { after: None };

/// Server, HTTP status, body and the expected kind.
const ROWS: &[(&str, u16, &str, LlmErrorKind)] = &[
    (
        "OpenAI, key",
        401,
        r#"{"error":{"message":"Incorrect API key provided: sk-x.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
        LlmErrorKind::Authentication,
    ),
    (
        "OpenAI, quota",
        429,
        r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        LlmErrorKind::Billing,
    ),
    (
        "OpenAI, rate",
        429,
        r#"{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#,
        RETRY_LATER,
    ),
    (
        "OpenAI, length",
        400,
        r#"{"error":{"message":"Your input exceeds","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        LlmErrorKind::ContextLength,
    ),
    (
        "OpenAI, model",
        404,
        r#"{"error":{"message":"The model `x` does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
        LlmErrorKind::NotFound,
    ),
    (
        "OpenAI, a lost item",
        404,
        r#"{"error":{"message":"Item with id 'rs_1' not found.","type":"invalid_request_error","param":"input","code":null}}"#,
        LlmErrorKind::InvalidRequest,
    ),
    (
        "OpenAI, tools over Responses only",
        400,
        r#"{"error":{"message":"Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.","type":"invalid_request_error","param":"reasoning_effort","code":null}}"#,
        LlmErrorKind::ToolsUnsupported,
    ),
    (
        "OpenAI, tools not taken",
        400,
        r#"{"error":{"message":"Unsupported parameter: 'tools'","type":"invalid_request_error","param":"tools","code":"unsupported_parameter"}}"#,
        LlmErrorKind::ToolsUnsupported,
    ),
    (
        "OpenAI, a wrong tool",
        400,
        r#"{"error":{"message":"Invalid 'tools[3].function.name': string too long","type":"invalid_request_error","param":"tools[3].function.name","code":"string_above_max_length"}}"#,
        LlmErrorKind::InvalidRequest,
    ),
    (
        "Azure, filter",
        400,
        r#"{"error":{"message":"The response was filtered","type":null,"param":"prompt","code":"content_filter","status":400}}"#,
        LlmErrorKind::Refusal,
    ),
    (
        "OpenAI, broken",
        500,
        r#"{"error":{"message":"The server had an error","type":"server_error"}}"#,
        RETRY_LATER,
    ),
    (
        "llama.cpp, length",
        400,
        r#"{"error":{"code":400,"message":"request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":4390,"n_ctx":4096}}"#,
        LlmErrorKind::ContextLength,
    ),
    (
        "llama.cpp, length while it writes",
        500,
        r#"{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}"#,
        LlmErrorKind::ContextLength,
    ),
    (
        "llama.cpp, no template",
        500,
        r#"{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}"#,
        LlmErrorKind::ToolsUnsupported,
    ),
    (
        "llama.cpp, loading",
        503,
        r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
        RETRY_LATER,
    ),
    (
        "llama.cpp, not made for it",
        501,
        r#"{"error":{"code":501,"message":"This server does not support chat","type":"not_supported_error"}}"#,
        LlmErrorKind::InvalidRequest,
    ),
    (
        "vLLM, length",
        400,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","param":null,"code":400}"#,
        LlmErrorKind::ContextLength,
    ),
    (
        "vLLM, no parser",
        400,
        r#"{"error":{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}}"#,
        LlmErrorKind::ToolsUnsupported,
    ),
    ("vLLM, key", 401, r#"{"error":"Unauthorized"}"#, LlmErrorKind::Authentication),
    (
        "FastAPI",
        422,
        r#"{"detail":[{"loc":["body","messages"],"msg":"field required","type":"missing"}]}"#,
        LlmErrorKind::InvalidRequest,
    ),
    ("FastAPI, path", 404, r#"{"detail":"Not Found"}"#, LlmErrorKind::NotFound),
    (
        "LM Studio",
        404,
        r#"{"error":"Unexpected endpoint or method. (POST /x)"}"#,
        LlmErrorKind::NotFound,
    ),
    (
        "OpenRouter, money",
        402,
        r#"{"error":{"message":"Insufficient credits","code":402},"user_id":"u"}"#,
        LlmErrorKind::Billing,
    ),
    (
        "OpenRouter, moderation",
        403,
        r#"{"error":{"code":403,"message":"Input was flagged","metadata":{"reasons":["violence"],"flagged_input":"x"}}}"#,
        LlmErrorKind::Refusal,
    ),
    (
        "OpenRouter, no tools",
        404,
        r#"{"error":{"message":"No endpoints found that support tool use.","code":404}}"#,
        LlmErrorKind::ToolsUnsupported,
    ),
    (
        "OpenRouter, its provider",
        429,
        r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"too many","provider_name":"P"}}}"#,
        RETRY_LATER,
    ),
    (
        "Ollama",
        400,
        r#"{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools","type":"api_error","param":null,"code":null}}"#,
        LlmErrorKind::ToolsUnsupported,
    ),
    (
        "Groq, no tools",
        400,
        r#"{"error":{"message":"`tools` is not supported with this model","type":"invalid_request_error"}}"#,
        LlmErrorKind::ToolsUnsupported,
    ),
    (
        "Together, no tools",
        400,
        r#"{"error":{"message":"meta-llama/x is not supported for JSON mode/function calling","type":"invalid_request_error"}}"#,
        LlmErrorKind::ToolsUnsupported,
    ),
    (
        "SiliconFlow, no tools",
        400,
        r#"{"code":20037,"message":"Function call is not supported for this model."}"#,
        LlmErrorKind::ToolsUnsupported,
    ),
    (
        "Gemini, no tools",
        400,
        r#"{"error":{"code":400,"message":"Function calling is not enabled for this model","status":"INVALID_ARGUMENT"}}"#,
        LlmErrorKind::ToolsUnsupported,
    ),
    (
        "xAI, no tools",
        400,
        r#"{"code":"Client specified an invalid argument","error":"Invalid request content: The model does not support tool use or function calling but tools or tool_choice have been specified on the request."}"#,
        LlmErrorKind::ToolsUnsupported,
    ),
    (
        "LiteLLM, no tools",
        400,
        r#"{"error":{"message":"litellm.UnsupportedParamsError: x does not support parameters: ['tools'], for model=y","type":"None","param":"None","code":"400"}}"#,
        LlmErrorKind::ToolsUnsupported,
    ),
    (
        "an older llama.cpp, no tools",
        500,
        r#"{"error":{"code":500,"message":"Unsupported param: tools","type":"server_error"}}"#,
        LlmErrorKind::ToolsUnsupported,
    ),
    (
        "Groq",
        400,
        r#"{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=f{}"}}"#,
        LlmErrorKind::MalformedToolCall,
    ),
    (
        "Google",
        403,
        r#"[{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED"}}]"#,
        LlmErrorKind::Authentication,
    ),
    ("a proxy", 502, "<html>Bad Gateway</html>", RETRY_LATER),
    ("nothing", 504, "", LlmErrorKind::TimedOut),
    ("nothing", 418, "null", LlmErrorKind::InvalidRequest),
];

/// Proves: G79
#[test]
fn each_error_of_each_server_has_its_kind() {
    for (case, status, body, kind) in ROWS {
        for api in [ProviderApi::OpenAiChat, ProviderApi::OpenAiResponses] {
            let error = codec::decode_error(api, *status, body.as_bytes());
            assert_eq!(error.kind, *kind, "{case}");
            assert!(!error.message.is_empty(), "{case}");
        }
    }
}

#[test]
fn the_message_is_that_of_the_server() {
    for (body, message) in [
        (r#"{"error":{"message":"a"}}"#, "a"),
        (r#"{"error":"b"}"#, "b"),
        (r#"{"message":"c","code":400}"#, "c"),
        (r#"{"detail":[{"msg":"d"},{"msg":"e"}]}"#, "d; e"),
        (r#"{"error":{"message":"f","metadata":{"raw":"g"}}}"#, "f: g"),
        (r#"{"odd":1}"#, r#"{"odd":1}"#),
        ("  plain\n", "plain"),
        ("", "no error message"),
    ] {
        assert_eq!(decode_error(400, body.as_bytes()).message, message);
    }
    assert_eq!(decode_error(400, b"\xff").message, "\u{fffd}");
    assert_eq!(decode_error(400, "é".repeat(3000).as_bytes()).message.chars().count(), 2000);
}

#[test]
fn the_partial_output_is_found_in_the_error() {
    let call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"x: y\"}}\n</tool_call>";
    let decode = |error: serde_json::Value| {
        let body = serde_json::json!({ "error": error }).to_string();
        let api_error = decode_error(500, body.as_bytes());
        (api_error.kind, api_error.partial_output)
    };
    for error in [
        serde_json::json!({"message": format!("error parsing tool call: raw='{call}', err=invalid character")}),
        serde_json::json!({"code": "tool_use_failed", "message": "Failed", "failed_generation": call}),
    ] {
        assert_eq!(decode(error), (LlmErrorKind::MalformedToolCall, Some(call.to_owned())));
    }
    // The text after an error position is not the complete call.
    let rest = format!("Failed to parse input at pos 12: {call}");
    for message in [
        rest.as_str(),
        "Failed to parse input at pos 12",
        "Failed to parse tool call arguments as JSON",
    ] {
        let message = serde_json::json!({ "message": message });
        assert_eq!(decode(message), (LlmErrorKind::MalformedToolCall, None));
    }
}
