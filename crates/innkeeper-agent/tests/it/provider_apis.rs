//! The six provider APIs over HTTP, against a scripted server.

mod media;
mod numbers;
mod tool_limits;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use innkeeper_agent::agent::{Agent, AgentSettings, RunResult};
use innkeeper_agent::conversation::Conversation;
use innkeeper_agent::provider::{
    Capabilities, FinishReason, LlmError, LlmErrorKind, LlmProvider as _, ProviderApi, Request,
};
use innkeeper_agent::run::{CallOrigin, RunOutcome, ToolCalling};
use innkeeper_agent::run_json::{RunContext, RunJson};
use innkeeper_agent::tools::{
    AvailableTool, ToolAnnotations, ToolCallFuture, ToolCallOptions, ToolOutput, ToolRunner,
};
use innkeeper_agent::transport::{Endpoint, HttpProvider};
use innkeeper_host::config::Secret;
use innkeeper_testkit::{Script, ScriptedLlm, ScriptedReply};
use innkeeper_toolcall::Tool;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The tools of the chain, with a record of their calls.
#[derive(Default)]
struct ChainTools(Mutex<Vec<(String, Value)>>);

/// The calls of the model, in order.
fn chain_calls() -> [(&'static str, Value); 5] {
    [
        ("files.list", json!({"folder": "/data"})),
        ("files.read", json!({"path": "/data/ä \"b\".txt", "lines": 3})),
        ("text.count", json!({"text": "a\nb\u{1F600}", "what": ["words", "lines"]})),
        ("notes.add", json!({"note": {"title": "t", "stars": 4.5}, "pinned": true})),
        ("clock.now", json!({})),
    ]
}

fn infer_schema(arguments: &Value) -> Value {
    let members = arguments.as_object().unwrap();
    let typed = members.iter().map(|(name, value)| {
        let schema = match value {
            Value::String(_) => json!({"type": "string"}),
            Value::Array(_) => json!({"type": "array", "items": {"type": "string"}}),
            Value::Object(_) => infer_schema(value),
            Value::Bool(_) => json!({"type": "boolean"}),
            Value::Number(number) if number.is_f64() => json!({"type": "number"}),
            Value::Number(_) | Value::Null => json!({"type": "integer"}),
        };
        (name.clone(), schema)
    });
    let properties: serde_json::Map<_, _> = typed.collect();
    let required: Vec<_> = members.keys().collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

impl ToolRunner for ChainTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let tool = |(name, arguments): &(&str, Value)| {
            let tool = Tool::new(*name, format!("Does {name}."), infer_schema(arguments));
            AvailableTool::new(tool, ToolAnnotations::default())
        };
        chain_calls().iter().map(tool).collect()
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let arguments: Value = serde_json::from_str(arguments.get()).unwrap();
        self.0.lock().unwrap().push((name.to_owned(), arguments));
        let text = format!("result of {name}");
        let result = json!({"content": [{"type": "text", "text": text}]});
        let result = serde_json::value::to_raw_value(&result).unwrap();
        Box::pin(async move { Ok(ToolOutput::new(result, false)) })
    }
}

/// Returns a common model of each API.
pub(crate) fn model_name(api: ProviderApi) -> &'static str {
    match api {
        ProviderApi::OpenAiChat => "gpt-4.1",
        ProviderApi::OpenAiResponses => "gpt-6.1-terra",
        ProviderApi::Anthropic => "claude-opus-5-5",
        ProviderApi::GeminiGenerate => "gemini-3.8-flash",
        ProviderApi::GeminiInteractions => "gemini-4-argon",
        ProviderApi::Ollama => "qwen3:8b",
    }
}

pub(crate) fn endpoint(api: ProviderApi, llm: &ScriptedLlm) -> Endpoint {
    let base_url = match api {
        ProviderApi::OpenAiChat | ProviderApi::OpenAiResponses => format!("{}/v1", llm.origin()),
        ProviderApi::Anthropic
        | ProviderApi::GeminiGenerate
        | ProviderApi::GeminiInteractions
        | ProviderApi::Ollama => llm.origin().to_owned(),
    };
    let key = Some(Secret::new(KEY));
    Endpoint { base_url, key, ..Endpoint::new("test", api, model_name(api)) }
}

/// The secret that no output may contain.
const KEY: &str = "sk-planted-0123456789";

fn chain_script(api: ProviderApi) -> Vec<ScriptedReply> {
    let mut script: Vec<_> = chain_calls()
        .into_iter()
        .map(|(name, arguments)| {
            // OpenAI itself returns no reasoning over this API.
            let first_reply = match api {
                ProviderApi::OpenAiChat => ScriptedReply::new(),
                _ => ScriptedReply::reasoning(format!("I need {name}.")),
            };
            first_reply.with_text("One moment.").with_tool_call(name, arguments).with_usage(100, 20)
        })
        .collect();
    script.push(ScriptedReply::text("All five are done: größer.").with_usage(200, 30));
    script
}

async fn run_chain(
    api: ProviderApi,
    script: Script,
    streaming: bool,
) -> (RunResult, Arc<ChainTools>, ScriptedLlm) {
    run_chain_with(api, script, streaming, AgentSettings::default()).await
}

async fn run_chain_with(
    api: ProviderApi,
    script: Script,
    streaming: bool,
    settings: AgentSettings,
) -> (RunResult, Arc<ChainTools>, ScriptedLlm) {
    let llm = ScriptedLlm::start(script).await;
    let chain = Arc::new(ChainTools::default());
    let provider = Arc::new(HttpProvider::new(endpoint(api, &llm)));
    let agent = Agent::new(provider, chain.clone(), settings);
    let report = if streaming {
        agent.run_streaming("Do all five.", |_| {}).await
    } else {
        agent.run("Do all five.").await
    };
    (report, chain, llm)
}

/// Saves the requests for `cargo xtask providers`, which validates them against the providers' own
/// types.
fn save_requests(api: ProviderApi, name: &str, llm: &ScriptedLlm) {
    let Some(dir) = std::env::var_os("INNKEEPER_KEEP_REQUESTS") else { return };
    let file = std::path::Path::new(&dir).join(format!("{api:?}-{name}.jsonl"));
    let lines = llm.requests().into_iter().map(|request| {
        let headers: serde_json::Map<_, _> =
            request.headers.into_iter().map(|(name, value)| (name, value.into())).collect();
        let line = json!({"method": request.method, "path": request.path, "headers": headers, "body": request.body});
        format!("{line}\n")
    });
    std::fs::write(file, lines.collect::<String>()).unwrap();
}

/// Proves: G16, G62, P-b1
#[tokio::test]
async fn the_same_chain_of_five_tools_runs_over_every_api_in_any_chunks() {
    for api in ProviderApi::ALL {
        for (name, chunks, streaming) in [
            ("whole", usize::MAX, false),
            ("bytes", 1, true),
            ("stream", usize::MAX, true),
            ("sevens", 7, true),
        ] {
            let script = Script::new(chain_script(api)).chunk_bytes(chunks);
            let (report, tools, llm) = run_chain(api, script, streaming).await;
            let context = format!("{api:?} {name}");
            assert!(report.is_success(), "{context}: {report:?}");
            assert_eq!(report.text, "All five are done: größer.", "{context}");
            let calls: Vec<_> = tools.0.lock().unwrap().clone();
            let expected: Vec<_> = chain_calls()
                .into_iter()
                .map(|(name, arguments)| (name.to_owned(), arguments))
                .collect();
            assert_eq!(calls, expected, "{context}");
            assert!(
                report.tool_calls.iter().all(|step| step.origin == CallOrigin::Native),
                "{context}"
            );
            let usage = report.stats.usage;
            assert_eq!((usage.prompt_tokens, usage.completion_tokens), (700, 130), "{context}");
            assert!(report.stats.usage_is_complete, "{context}");
            let requests = llm.requests();
            assert_eq!(requests.len(), 6, "{context}");
            assert!(
                requests.iter().all(|seen| seen.status == Some(200)),
                "{context}: {requests:?}"
            );
            assert!(requests[0].text.contains("Do all five."), "{context}");
            save_requests(api, name, &llm);
        }
    }
}

/// Returns the result of a run as `ask --json` prints it.
fn run_json(report: &RunResult, api: ProviderApi) -> Value {
    let context = RunContext {
        provider: "test",
        model: model_name(api),
        system: "",
        conversation: &Conversation::new(),
        tools_discovered: 5,
        servers_connected: 1,
    };
    serde_json::to_value(RunJson::new(report, &context)).unwrap()
}

/// Proves: G30
#[tokio::test]
async fn the_tokens_of_a_result_are_the_sums_that_the_provider_reported() {
    for api in ProviderApi::ALL {
        for streaming in [false, true] {
            let script = Script::new([
                ScriptedReply::tool_call("files.list", json!({"folder": "a"}))
                    .with_usage(1_000_003, 17),
                ScriptedReply::text("Done.").with_usage(2_000, 5).with_cached_tokens(20),
            ]);
            let (report, _, _llm) = run_chain(api, script, streaming).await;
            let outcome = run_json(&report, api);
            let usage = &outcome["execution_metadata"]["token_usage"];
            assert_eq!(usage["prompt_tokens"], json!(1_002_003), "{api:?} {streaming}");
            assert_eq!(usage["completion_tokens"], json!(22), "{api:?} {streaming}");
            assert_eq!(usage["total_tokens"], json!(1_002_025), "{api:?} {streaming}");
            assert_eq!(usage["available"], json!(true), "{api:?} {streaming}");
        }
    }
}

/// Proves: G30
#[tokio::test]
async fn tokens_that_no_provider_reported_are_zero_and_marked_as_unavailable() {
    for api in ProviderApi::ALL {
        for streaming in [false, true] {
            for (first, expected) in [
                (ScriptedReply::new().without_usage(), (0, 0)),
                (ScriptedReply::new().with_usage(700, 11), (700, 11)),
            ] {
                let first = first.with_tool_call("files.list", json!({"folder": "a"}));
                let script = Script::new([first, ScriptedReply::text("Done.").without_usage()]);
                let (report, _, _llm) = run_chain(api, script, streaming).await;
                assert!(report.is_success(), "{api:?} {streaming}: {report:?}");
                let outcome = run_json(&report, api);
                let (prompt, completion) = expected;
                let usage = json!({
                    "prompt_tokens": prompt, "completion_tokens": completion,
                    "total_tokens": prompt + completion, "available": false,
                });
                let reported = &outcome["execution_metadata"]["token_usage"];
                assert_eq!(*reported, usage, "{api:?} {streaming}");
            }
        }
    }
}

/// Proves: G53
#[tokio::test]
async fn parallel_calls_are_answered_in_their_order_over_every_api() {
    for api in ProviderApi::ALL {
        let two = ScriptedReply::text("Both.")
            .with_tool_call("files.list", json!({"folder": "a"}))
            .with_tool_call("files.list", json!({"folder": "b"}));
        let (report, tools, llm) =
            run_chain(api, Script::new([two, ScriptedReply::text("Done.")]), true).await;
        assert!(report.is_success(), "{api:?}: {report:?}");
        assert_eq!(tools.0.lock().unwrap().len(), 2, "{api:?}");
        save_requests(api, "parallel", &llm);
    }
}

/// Proves: G55, G79
#[tokio::test(start_paused = true)]
async fn a_failure_has_the_same_kind_over_every_api() {
    for api in ProviderApi::ALL {
        for (status, kind) in [
            (401, LlmErrorKind::Authentication),
            (404, LlmErrorKind::NotFound),
            (400, LlmErrorKind::InvalidRequest),
        ] {
            let script =
                Script::new([ScriptedReply::status(status).with_error_message("as asked")]);
            let (report, _, llm) = run_chain(api, script, false).await;
            let RunOutcome::Failed(error) = &report.outcome else { panic!("{api:?}: {report:?}") };
            assert_eq!(error.kind, kind, "{api:?} {status}: {error}");
            assert_eq!(error.status, Some(status), "{api:?}");
            assert!(error.to_string().contains("as asked"), "{api:?}: {error}");
            assert_eq!(llm.requests().len(), 1, "{api:?} {status}");
        }
    }
}

/// Proves: G55
#[tokio::test]
async fn a_provider_that_is_overloaded_is_asked_again_when_it_says() {
    for api in ProviderApi::ALL {
        for status in [429, 500, 503] {
            let busy = ScriptedReply::status(status)
                .with_header("retry-after", "0.01")
                .with_error_message("busy");
            let script = Script::new([busy, ScriptedReply::text("Now.")]);
            let (report, _, llm) = run_chain(api, script, true).await;
            assert!(report.is_success(), "{api:?} {status}: {report:?}");
            assert_eq!(report.stats.request_retries, 1, "{api:?} {status}");
            assert_eq!(llm.requests().len(), 2, "{api:?} {status}");
        }
        let long = ScriptedReply::status(429)
            .with_header("retry-after", "3600")
            .with_error_message("tomorrow");
        let (report, ..) = run_chain(api, Script::new([long]), false).await;
        let RunOutcome::Failed(error) = &report.outcome else { panic!("{api:?}: {report:?}") };
        let after = Some(Duration::from_secs(3600));
        assert_eq!(error.kind, LlmErrorKind::RetryLater { after }, "{api:?}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_asked_for_again_and_no_half_of_it_is_run() {
    for api in ProviderApi::ALL {
        let half =
            ScriptedReply::tool_call("files.list", json!({"folder": "a"})).disconnect_after(200);
        let script = Script::new([half, ScriptedReply::text("Whole.")]);
        let (report, tools, _) = run_chain(api, script, true).await;
        assert!(report.is_success(), "{api:?}: {report:?}");
        assert_eq!(report.text, "Whole.", "{api:?}");
        assert!(tools.0.lock().unwrap().is_empty(), "{api:?}");
    }
}

/// Proxies keep connections open, and servers close them without a final chunk.
#[tokio::test]
async fn an_answer_that_is_whole_counts_however_its_connection_ends() {
    for api in [
        ProviderApi::OpenAiChat,
        ProviderApi::OpenAiResponses,
        ProviderApi::Anthropic,
        ProviderApi::Ollama,
    ] {
        for reply in [
            ScriptedReply::text("Whole.").stall_after(1 << 20),
            ScriptedReply::text("Whole.").disconnect_after(1 << 20),
        ] {
            let running = run_chain(api, Script::new([reply]), true);
            let (report, _, llm) =
                tokio::time::timeout(Duration::from_secs(20), running).await.unwrap();
            assert!(report.is_success(), "{api:?}: {report:?}");
            assert_eq!(llm.requests().len(), 1, "{api:?}");
        }
    }
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_is_one() {
    for api in ProviderApi::ALL {
        let reply = ScriptedReply::text("Half an").with_stream_error("the model fell over");
        let llm = ScriptedLlm::start(Script::new([reply])).await;
        let provider = HttpProvider::new(endpoint(api, &llm));
        let messages = vec![innkeeper_agent::conversation::Message::User("Hi".into())];
        let mut stream = provider.stream(Request { messages, ..Request::default() });
        let mut last = None;
        while let Some(chunk) = futures_util::StreamExt::next(&mut stream).await {
            last = Some(chunk);
        }
        let error = last.unwrap().unwrap_err();
        assert!(error.to_string().contains("fell over"), "{api:?}: {error}");
    }
}

/// Proves: G77
#[tokio::test]
async fn a_response_truncated_by_its_token_limit_is_reported_over_every_api() {
    for api in ProviderApi::ALL {
        for streaming in [false, true] {
            let (report, ..) = run_chain(
                api,
                Script::new([ScriptedReply::text("Half an").truncated()]),
                streaming,
            )
            .await;
            assert!(matches!(report.outcome, RunOutcome::Truncated), "{api:?}: {report:?}");
            assert_eq!(report.text, "Half an", "{api:?}");
        }
    }
}

/// Two APIs have no stop reason for a refusal.
///
/// Proves: G53
#[tokio::test]
async fn a_model_that_declines_is_a_distinct_outcome() {
    for api in [
        ProviderApi::OpenAiChat,
        ProviderApi::OpenAiResponses,
        ProviderApi::Anthropic,
        ProviderApi::GeminiGenerate,
    ] {
        for streaming in [false, true] {
            let script = Script::new([ScriptedReply::text("I will not.").refused()]);
            let (report, ..) = run_chain(api, script, streaming).await;
            assert!(
                matches!(report.outcome, RunOutcome::Refused),
                "{api:?} {streaming}: {report:?}"
            );
        }
    }
}

/// Proves: G56
#[tokio::test]
async fn malformed_arguments_become_an_error_to_the_model_over_every_api() {
    for api in ProviderApi::ALL {
        for streaming in [false, true] {
            let bad = ScriptedReply::new().with_raw_tool_call("files.list", r#"{"folder": "#);
            let valid_call = ScriptedReply::tool_call("files.list", json!({"folder": "a"}));
            let script = Script::new([bad, valid_call, ScriptedReply::text("Done.")]);
            let mut settings = AgentSettings::default();
            settings.limits.retry_delay = Duration::from_millis(1);
            let (report, tools, llm) = run_chain_with(api, script, streaming, settings).await;
            assert!(report.is_success(), "{api:?} {streaming}: {report:?}");
            let calls = tools.0.lock().unwrap().clone();
            assert_eq!(calls, [("files.list".to_owned(), json!({"folder": "a"}))], "{api:?}");
            // An API whose arguments are an object has an empty object or a stop reason instead.
            let errors = [
                "not valid JSON",
                "missing required property `folder`",
                "the tool call is malformed",
            ];
            let has_error = |text: &str| errors.iter().any(|error| text.contains(error));
            let texts: Vec<String> = llm.requests().into_iter().map(|it| it.text).collect();
            assert!(!has_error(&texts[0]), "{api:?} {streaming}: {}", texts[0]);
            assert!(has_error(&texts[1]), "{api:?} {streaming}: {}", texts[1]);
        }
    }
}

/// Proves: P2, P4
#[tokio::test]
async fn in_prompt_mode_no_api_is_sent_tools() {
    for api in ProviderApi::ALL {
        let call = r#"{"tool": "files.list", "params": {"folder": "a"}}"#;
        let script = Script::new([ScriptedReply::text(call), ScriptedReply::text("Done.")]);
        let tool_calling = ToolCalling::Prompt;
        let mut settings = AgentSettings::default();
        settings.tool_use.tool_calling = tool_calling;
        settings.requests.temperature = Some(0.7);
        let (report, tools, llm) = run_chain_with(api, script, true, settings).await;
        assert!(report.is_success(), "{api:?}: {report:?}");
        assert_eq!(tools.0.lock().unwrap().len(), 1, "{api:?}");
        for request in llm.requests() {
            assert!(request.body.get("tools").is_none(), "{api:?}");
            assert!(request.text.contains("files.list"), "{api:?}: the prompt describes the tools");
        }
        if api == ProviderApi::Ollama {
            let options = &llm.requests()[0].body["options"];
            assert_eq!(options["temperature"], json!(0.7));
            assert_eq!(options["num_predict"], json!(4096));
        }
        save_requests(api, "prompt", &llm);
    }
}

#[tokio::test]
async fn a_truncation_that_llama_cpp_does_not_report_is_noticed_by_its_token_count() {
    for (tokens, finish_reason) in [(7, FinishReason::Stop), (8, FinishReason::Length)] {
        let script = Script::new([ScriptedReply::text("Half an").with_usage(5, tokens)])
            .chat_template_caps(&json!({"supports_tools": true}));
        let llm = ScriptedLlm::start(script).await;
        let base_url = format!("{}/v1", llm.origin());
        let endpoint =
            Endpoint { base_url, ..Endpoint::new("local", ProviderApi::OpenAiResponses, "m") };
        let mut provider = HttpProvider::new(endpoint);
        provider.probe_server().await.unwrap();
        let messages = vec![innkeeper_agent::conversation::Message::User("Hi".into())];
        let request = Request { messages, max_tokens: Some(8), ..Request::default() };
        assert_eq!(
            provider.generate(request).await.unwrap().finish_reason,
            finish_reason,
            "{tokens}"
        );
    }
}

/// Proves: G52
#[tokio::test]
async fn the_same_request_gives_the_same_response_over_every_api() {
    let mut responses = BTreeSet::new();
    for api in ProviderApi::ALL {
        let reply = ScriptedReply::text("Look.")
            .with_tool_call("files.list", json!({"folder": "a"}))
            .with_usage(11, 7);
        let llm = ScriptedLlm::start(Script::new([reply])).await;
        let provider = HttpProvider::new(endpoint(api, &llm));
        let tools = ChainTools::default()
            .list_tools()
            .into_iter()
            .map(|available| available.tool)
            .collect();
        let messages = vec![innkeeper_agent::conversation::Message::User("Hi".into())];
        let request = Request { messages, tools: Arc::new(tools), ..Request::default() };
        let response = provider.generate(request).await.unwrap();
        let calls: Vec<_> = response
            .message
            .calls()
            .map(|call| {
                (call.name.clone(), serde_json::from_str::<Value>(&call.arguments).unwrap())
            })
            .collect();
        responses.insert(format!(
            "{:?} {:?} {:?} {:?}",
            response.message.visible_text(),
            calls,
            response.usage.map(|usage| (usage.prompt_tokens, usage.completion_tokens)),
            response.finish_reason
        ));
    }
    let expected = format!(
        "{:?} {:?} {:?} {:?}",
        "Look.",
        [("files.list", json!({"folder": "a"}))],
        Some((11, 7)),
        FinishReason::ToolCalls
    );
    assert_eq!(responses, [expected].into());
}

/// No server listens at the address, and the error contains no secret part of the address.
#[tokio::test]
async fn an_address_that_is_not_reached_is_an_error_that_names_the_provider() {
    let endpoint = Endpoint {
        base_url: format!("http://user:{KEY}@127.0.0.1:9/v1"),
        capabilities: Capabilities::default(),
        ..Endpoint::new("mine", ProviderApi::OpenAiChat, "m")
    };
    let messages = vec![innkeeper_agent::conversation::Message::User("Hi".into())];
    let request = Request { messages, ..Request::default() };
    let error: LlmError = HttpProvider::new(endpoint).generate(request).await.unwrap_err();
    assert_eq!(error.kind, LlmErrorKind::Connection);
    let chain = error_chain(&error);
    assert!(chain.contains("`mine`") && !chain.contains(KEY), "{chain}");
}

/// Returns an error with all its sources.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(" <- {cause} {cause:?}"));
        source = cause.source();
    }
    text
}
