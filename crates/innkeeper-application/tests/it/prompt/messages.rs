//! Tests of messages to a model and of its calls, with the names of document 004.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use innkeeper_testkit::{Journal, ScriptedLlm, ScriptedReply, fixture_program};
use mcp_client::McpClient;
use mcp_host::conversation::Message;
use mcp_host::provider::LlmErrorKind;
use mcp_host::tools::{
    AvailableTool, Tool, ToolAnnotations, ToolCallFuture, ToolCallOptions, ToolOutput, ToolRunner,
};
use mcp_host::{
    LlmProvider, LlmRequest, LlmResponse, McpHost, McpHostConfig, OllamaProvider, SafetyConfig,
    async_trait,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::time::Instant;

const TIMEOUT: Duration = Duration::from_secs(30);

/// A model with scripted responses, and the requests with their times.
#[derive(Clone, Default)]
struct Model {
    responses: Arc<Mutex<VecDeque<String>>>,
    requests: Arc<Mutex<Vec<(Instant, LlmRequest)>>>,
}

impl Model {
    fn new(responses: &[&str]) -> Self {
        let responses = responses.iter().map(|text| (*text).to_owned()).collect();
        Self { responses: Arc::new(Mutex::new(responses)), requests: Arc::default() }
    }

    fn requests(&self) -> Vec<(Instant, LlmRequest)> {
        self.requests.lock().unwrap().clone()
    }
}

#[async_trait]
impl LlmProvider for Model {
    async fn generate(&self, request: LlmRequest) -> mcp_host::Result<LlmResponse> {
        self.requests.lock().unwrap().push((Instant::now(), request));
        Ok(LlmResponse::from_text(self.responses.lock().unwrap().pop_front().unwrap()))
    }
    fn name(&self) -> &str {
        "model"
    }
}

/// The tool `read`, which records its arguments.
#[derive(Default)]
struct ReadTool(Mutex<Vec<Value>>);

impl ToolRunner for ReadTool {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let properties = json!({"path": {"type": "string"}, "filter": {"type": "object"}});
        let schema = json!({"type": "object", "properties": properties, "required": ["path"]});
        let tool = Tool::new("read", "Reads a file.", schema);
        vec![AvailableTool::new(tool, ToolAnnotations::default())]
    }

    fn call_tool<'r>(
        &'r self,
        _: &'r str,
        arguments: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        self.0.lock().unwrap().push(serde_json::from_str(arguments.get()).unwrap());
        let result = json!({"content": [{"type": "text", "text": "It is read."}]});
        let raw = to_raw_value(&result).unwrap();
        Box::pin(async { Ok(ToolOutput::new(raw, false)) })
    }
}

/// Returns a host with a model and the tool `read`.
fn host(model: &Model, config: McpHostConfig) -> (McpHost, Arc<ReadTool>) {
    let tool = Arc::new(ReadTool::default());
    let runner: Arc<dyn ToolRunner> = tool.clone();
    let builder = McpHost::builder().with_llm_provider(Box::new(model.clone()));
    (builder.with_mcp_client(runner).with_config(config).build().unwrap(), tool)
}

const CALL: &str = r#"{"tool": "read", "params": {"path": "a"}}"#;

/// Proves: P12
#[tokio::test]
async fn a_call_with_nested_braces_reaches_the_server_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let schema = json!({"type": "object", "properties": {"filter": {"type": "object"}}});
    let tools = json!([{"name": "find", "inputSchema": schema}]).to_string();
    let arguments = json!({"filter": {"and": [{"name": "a}"}, {"size": {"min": 1}}]}});
    let call = format!("I look.\n{}\n", json!({"tool": "find", "params": arguments}));
    let llm = ScriptedLlm::start([ScriptedReply::text(call), ScriptedReply::text("Found.")]).await;
    let program = fixture_program().display().to_string();
    let args = ["--tools", &tools, "--journal", journal.to_str().unwrap()];
    let client = Arc::new(McpClient::connect(&program, &args).await.unwrap());
    let ollama = OllamaProvider::with_config("phi:3b".to_owned(), llm.origin().to_owned(), TIMEOUT);
    let builder = McpHost::builder().with_llm_provider(Box::new(ollama));
    let mut host = builder.with_mcp_client(client.clone()).build().unwrap();
    assert_eq!(host.process_message("Find it.").await.unwrap(), "Found.");
    client.close().await;
    let journal = Journal::read(&journal);
    let sent: Vec<&Value> =
        journal.params("tools/call").into_iter().map(|params| &params["arguments"]).collect();
    assert_eq!(sent, [&arguments]);
}

/// Proves: P26
#[tokio::test]
async fn ollama_gets_the_prompt_of_the_models_family_and_not_of_the_provider() {
    let mut systems = Vec::new();
    for model in ["mistral:7b", "qwen2.5-coder:7b", "phi:3b", "mistral:latest"] {
        let llm = ScriptedLlm::start([ScriptedReply::text("Hello.")]).await;
        let ollama =
            OllamaProvider::with_config(model.to_owned(), llm.origin().to_owned(), TIMEOUT);
        let runner: Arc<dyn ToolRunner> = Arc::new(ReadTool::default());
        let builder = McpHost::builder().with_llm_provider(Box::new(ollama));
        let mut host = builder.with_mcp_client(runner).build().unwrap();
        host.process_message("Hi").await.unwrap();
        systems.push(llm.requests()[0].body["messages"][0]["content"].clone());
    }
    assert_eq!(systems[0], systems[3]);
    systems.truncate(3);
    systems.sort_by_key(Value::to_string);
    systems.dedup();
    assert_eq!(systems.len(), 3, "{systems:#?}");
}

/// Proves: P6
#[tokio::test]
async fn the_conversation_contains_each_response_of_the_model_once() {
    let model = Model::new(&[CALL, "It is a file.", "You are welcome."]);
    let (mut host, _) = host(&model, McpHostConfig::default());
    host.process_message("Read a.").await.unwrap();
    host.process_message("Thanks.").await.unwrap();
    let last = model.requests()[2].1.clone();
    // In a prompt, the results of tools are a user message.
    let roles: Vec<&str> = last
        .messages
        .iter()
        .map(|message| match message {
            Message::User(_) => "user",
            Message::Assistant(_) => "assistant",
            Message::ToolResults(_) => "results",
        })
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    let text = last.to_prompt_text();
    for part in ["Read a.", "It is read.", "It is a file.", "Thanks."] {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
}

/// Proves: P13, P24
#[tokio::test(start_paused = true)]
async fn corrections_have_growing_delays_and_falling_temperatures() {
    // Two equal problems in a row would end the run.
    let model = Model::new(&[
        r#"{"tool": "read", "params": {}}"#,
        r#"{"tool": "read", "params": {"path": {"no": "text"}}}"#,
        r#"{"tool": "read", "params": {"filter": {}}}"#,
        "I give up.",
    ]);
    let (mut host, tool) = host(&model, McpHostConfig::default());
    host.process_message("Read a.").await.unwrap();
    assert_eq!(*tool.0.lock().unwrap(), Vec::<Value>::new());
    let requests = model.requests();
    let delays: Vec<Duration> =
        requests.windows(2).map(|pair| pair[1].0.duration_since(pair[0].0)).collect();
    for (delay, expected) in delays.iter().zip([1000, 2000, 4000]) {
        // The jitter adds at most 30 %.
        let expected = Duration::from_millis(expected);
        assert!((expected..=expected.mul_f64(1.3)).contains(delay), "{delays:?}");
    }
    let temperatures: Vec<f64> =
        requests.iter().map(|(_, request)| request.temperature.unwrap()).collect();
    for (temperature, expected) in temperatures.iter().zip([0.7, 0.6, 0.5, 0.4]) {
        assert!((temperature - expected).abs() < 1e-6, "{temperatures:?}");
    }
    assert_eq!((delays.len(), temperatures.len()), (3, 4));
}

/// Proves: P10
#[tokio::test(start_paused = true)]
async fn a_call_that_violates_the_schema_is_not_executed_and_the_model_learns_the_parameter() {
    for invalid in [
        r#"{"tool": "read", "params": {"filter": {}}}"#,
        r#"{"tool": "read", "params": {"path": {"no": "text"}}}"#,
    ] {
        let model = Model::new(&[invalid, CALL, "Done."]);
        let (mut host, tool) = host(&model, McpHostConfig::default());
        assert_eq!(host.process_message("Read a.").await.unwrap(), "Done.");
        assert_eq!(*tool.0.lock().unwrap(), [json!({"path": "a"})], "{invalid}");
        let correction = model.requests()[1].1.messages.last().unwrap().clone();
        assert!(format!("{correction:?}").contains("path"), "{correction:?}");
    }
}

/// Proves: P29
#[tokio::test(start_paused = true)]
async fn a_response_with_more_calls_than_max_tools_per_request_executes_none() {
    let default_limit = McpHostConfig::default().safety_constraints.max_tools_per_request;
    assert_eq!(default_limit, 5);
    for (limit, count) in [(2, 3), (3, 3), (default_limit, 6), (default_limit, 5)] {
        let calls = vec![CALL; count].join("\n");
        let model = Model::new(&[&calls, "Done."]);
        let mut config = McpHostConfig::default();
        config.safety_constraints.max_tools_per_request = limit;
        let (mut host, tool) = host(&model, config);
        assert_eq!(host.process_message("Read a.").await.unwrap(), "Done.");
        let is_allowed = count <= limit;
        let run = if is_allowed { count } else { 0 };
        assert_eq!(tool.0.lock().unwrap().len(), run, "{count} calls, limit {limit}");
        let next = format!("{:?}", model.requests()[1].1.messages.last().unwrap());
        assert_eq!(next.contains("too many calls in one response"), !is_allowed, "{next}");
    }
}

/// Proves: P8
#[tokio::test(start_paused = true)]
async fn a_request_above_rate_limit_per_minute_fails_until_a_minute_has_passed() {
    let model = Model::new(&["Yes."; 31]);
    let (mut host, _) = host(&model, McpHostConfig::default());
    for message in 1..=30 {
        host.process_message(&message.to_string()).await.unwrap();
    }
    let error = host.process_message("31").await.unwrap_err();
    let mcp_host::compat::McpHostError::Llm(error) = error else { panic!("{error:?}") };
    let after = Duration::from_secs(60);
    assert_eq!(error.kind, LlmErrorKind::LocalRateLimit { after });
    assert_eq!(model.requests().len(), 30);
    tokio::time::advance(after).await;
    assert_eq!(host.process_message("32").await.unwrap(), "Yes.");
}

/// Proves: P8
#[tokio::test(start_paused = true)]
async fn a_host_that_waits_sends_the_request_above_the_limit_a_minute_later() {
    let model = Model::new(&["Yes."; 31]);
    let mut host = McpHost::builder()
        .with_llm_provider(Box::new(model.clone()))
        .with_mcp_client(Arc::new(ReadTool::default()) as Arc<dyn ToolRunner>)
        .wait_for_rate_limit()
        .build()
        .unwrap();
    let started_at = Instant::now();
    for message in 1..=31 {
        assert_eq!(host.process_message(&message.to_string()).await.unwrap(), "Yes.");
    }
    let sent: Vec<_> = model.requests().iter().map(|(at, _)| *at - started_at).collect();
    assert_eq!((sent[29], sent[30]), (Duration::ZERO, Duration::from_secs(60)));
}

/// Proves: P7, P28
#[tokio::test(start_paused = true)]
async fn a_request_keeps_the_system_prompt_and_the_newest_messages_within_the_budget() {
    for (budget, set_budget) in [(2000, true), (8192, false)] {
        let model = Model::new(&["Yes."; 20]);
        let config = McpHostConfig {
            safety_constraints: SafetyConfig {
                max_tokens_per_request: 77,
                ..SafetyConfig::default()
            },
            ..McpHostConfig::default()
        };
        let mut builder = McpHost::builder()
            .with_llm_provider(Box::new(model.clone()))
            .with_mcp_client(Arc::new(ReadTool::default()) as Arc<dyn ToolRunner>)
            .with_system_prompt("Be brief.")
            .with_config(config);
        if set_budget {
            builder = builder.with_context_tokens(budget);
        }
        let mut host = builder.build().unwrap();
        let question = |number: usize| format!("question {number}. {}", "x".repeat(budget / 3));
        for number in 1..=20 {
            host.process_message(&question(number)).await.unwrap();
        }
        let requests = model.requests();
        for (number, (_, request)) in (1..).zip(&requests) {
            let texts: Vec<String> = request.messages.iter().map(text_of).collect();
            assert!(request.system.starts_with("Be brief."), "{}", request.system);
            let bytes = request.system.len() + texts.iter().map(String::len).sum::<usize>();
            assert!(bytes / 4 <= budget, "{bytes} bytes in request {number} of {budget} tokens");
            assert!(texts.last().is_some_and(|text| text.ends_with(&question(number))));
            assert_eq!(request.max_tokens, Some(77));
        }
        let last = &requests[19].1.messages;
        assert!(last.len() > 1, "earlier messages stay as far as they fit");
        assert!(!last.iter().any(|message| text_of(message).contains("question 1. ")));
    }
}

fn text_of(message: &Message) -> String {
    match message {
        Message::User(content) => content.to_text().into_owned(),
        Message::Assistant(assistant) => assistant.visible_text(),
        Message::ToolResults(_) => String::new(),
    }
}

/// Proves: P9
#[tokio::test]
async fn a_blocked_tool_is_not_offered_and_its_call_is_not_executed() {
    let model = Model::new(&[CALL, "It is blocked."]);
    let mut config = McpHostConfig { retry_delay_ms: 0, ..McpHostConfig::default() };
    config.safety_constraints.blocked_tool_patterns = vec!["read".to_owned()];
    let (mut host, tool) = host(&model, config);
    let _ = host.process_message("Read a.").await;
    assert_eq!(*tool.0.lock().unwrap(), Vec::<Value>::new());
    let system = &model.requests()[0].1.system;
    assert!(!system.contains("Reads a file."), "{system}");
}
