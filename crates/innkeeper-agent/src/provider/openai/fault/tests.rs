//! Failures as servers tell them.

use super::*;
use crate::provider::Wire;
use crate::provider::codec;

const LATER: Class = Class::Later { after: None };

/// Who says what, with which status.
const ROWS: &[(&str, u16, &str, Class)] = &[
    (
        "OpenAI, key",
        401,
        r#"{"error":{"message":"Incorrect API key provided: sk-x.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
        Class::Key,
    ),
    (
        "OpenAI, quota",
        429,
        r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        Class::Billing,
    ),
    (
        "OpenAI, rate",
        429,
        r#"{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#,
        LATER,
    ),
    (
        "OpenAI, length",
        400,
        r#"{"error":{"message":"Your input exceeds","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        Class::TooLong,
    ),
    (
        "OpenAI, model",
        404,
        r#"{"error":{"message":"The model `x` does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
        Class::NotFound,
    ),
    (
        "OpenAI, a lost item",
        404,
        r#"{"error":{"message":"Item with id 'rs_1' not found.","type":"invalid_request_error","param":"input","code":null}}"#,
        Class::Request,
    ),
    (
        "OpenAI, tools over Responses only",
        400,
        r#"{"error":{"message":"Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.","type":"invalid_request_error","param":"reasoning_effort","code":null}}"#,
        Class::NoTools,
    ),
    (
        "OpenAI, tools not taken",
        400,
        r#"{"error":{"message":"Unsupported parameter: 'tools'","type":"invalid_request_error","param":"tools","code":"unsupported_parameter"}}"#,
        Class::NoTools,
    ),
    (
        "OpenAI, a wrong tool",
        400,
        r#"{"error":{"message":"Invalid 'tools[3].function.name': string too long","type":"invalid_request_error","param":"tools[3].function.name","code":"string_above_max_length"}}"#,
        Class::Request,
    ),
    (
        "Azure, filter",
        400,
        r#"{"error":{"message":"The response was filtered","type":null,"param":"prompt","code":"content_filter","status":400}}"#,
        Class::Refused,
    ),
    (
        "OpenAI, broken",
        500,
        r#"{"error":{"message":"The server had an error","type":"server_error"}}"#,
        LATER,
    ),
    (
        "llama.cpp, length",
        400,
        r#"{"error":{"code":400,"message":"request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":4390,"n_ctx":4096}}"#,
        Class::TooLong,
    ),
    (
        "llama.cpp, length while it writes",
        500,
        r#"{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}"#,
        Class::TooLong,
    ),
    (
        "llama.cpp, no template",
        500,
        r#"{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}"#,
        Class::NoTools,
    ),
    (
        "llama.cpp, loading",
        503,
        r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
        LATER,
    ),
    (
        "llama.cpp, not made for it",
        501,
        r#"{"error":{"code":501,"message":"This server does not support chat","type":"not_supported_error"}}"#,
        Class::Request,
    ),
    (
        "vLLM, length",
        400,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","param":null,"code":400}"#,
        Class::TooLong,
    ),
    (
        "vLLM, no parser",
        400,
        r#"{"error":{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}}"#,
        Class::NoTools,
    ),
    ("vLLM, key", 401, r#"{"error":"Unauthorized"}"#, Class::Key),
    (
        "FastAPI",
        422,
        r#"{"detail":[{"loc":["body","messages"],"msg":"field required","type":"missing"}]}"#,
        Class::Request,
    ),
    ("FastAPI, path", 404, r#"{"detail":"Not Found"}"#, Class::NotFound),
    ("LM Studio", 404, r#"{"error":"Unexpected endpoint or method. (POST /x)"}"#, Class::NotFound),
    (
        "OpenRouter, money",
        402,
        r#"{"error":{"message":"Insufficient credits","code":402},"user_id":"u"}"#,
        Class::Billing,
    ),
    (
        "OpenRouter, moderation",
        403,
        r#"{"error":{"code":403,"message":"Input was flagged","metadata":{"reasons":["violence"],"flagged_input":"x"}}}"#,
        Class::Refused,
    ),
    (
        "OpenRouter, no tools",
        404,
        r#"{"error":{"message":"No endpoints found that support tool use.","code":404}}"#,
        Class::NoTools,
    ),
    (
        "OpenRouter, its provider",
        429,
        r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"too many","provider_name":"P"}}}"#,
        LATER,
    ),
    (
        "Ollama",
        400,
        r#"{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools","type":"api_error","param":null,"code":null}}"#,
        Class::NoTools,
    ),
    (
        "Groq",
        400,
        r#"{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=f{}"}}"#,
        Class::Malformed,
    ),
    (
        "Google",
        403,
        r#"[{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED"}}]"#,
        Class::Key,
    ),
    ("a proxy", 502, "<html>Bad Gateway</html>", LATER),
    ("nothing", 504, "", Class::TimedOut),
    ("nothing", 418, "null", Class::Request),
];

/// Proves: G79
#[test]
fn each_failure_has_its_class_in_each_servers_words() {
    for (what, status, body, class) in ROWS {
        for wire in [Wire::OpenAiChat, Wire::OpenAiResponses] {
            let fault = codec::fault(wire, *status, body.as_bytes());
            assert_eq!(fault.class, *class, "{what}");
            assert!(!fault.message.is_empty(), "{what}");
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
        ("", "the answer says nothing of why"),
    ] {
        assert_eq!(fault(400, body.as_bytes()).message, message);
    }
    assert_eq!(fault(400, b"\xff").message, "\u{fffd}");
    assert_eq!(fault(400, "é".repeat(3000).as_bytes()).message.chars().count(), 2000);
}

#[test]
fn what_the_model_had_written_is_found_in_the_failure() {
    let call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"x: y\"}}\n</tool_call>";
    let told = |error: serde_json::Value| {
        let body = serde_json::json!({ "error": error }).to_string();
        let fault = fault(500, body.as_bytes());
        (fault.class, fault.written)
    };
    for error in [
        serde_json::json!({"message": format!("error parsing tool call: raw='{call}', err=invalid character")}),
        serde_json::json!({"code": "tool_use_failed", "message": "Failed", "failed_generation": call}),
    ] {
        assert_eq!(told(error), (Class::Malformed, Some(call.to_owned())));
    }
    // What stands behind a place in the middle is not what the model wrote.
    let rest = format!("Failed to parse input at pos 12: {call}");
    for message in [
        rest.as_str(),
        "Failed to parse input at pos 12",
        "Failed to parse tool call arguments as JSON",
    ] {
        let message = serde_json::json!({ "message": message });
        assert_eq!(told(message), (Class::Malformed, None));
    }
}
