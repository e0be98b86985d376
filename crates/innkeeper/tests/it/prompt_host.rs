//! Tests of the names of document 004 with an HTTP model and a stdio server.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use innkeeper::agent::{Agent, AgentSettings, CacheSettings};
use innkeeper::compat as mcp_client;
use innkeeper::compat as mcp_host;
use innkeeper::provider::{ProviderApi, ScriptedProvider};
use innkeeper::tools::{
    AvailableTool, ToolAnnotations, ToolCallFuture, ToolCallOptions, ToolOutput, ToolRunner,
};
use innkeeper::transport::{Endpoint, HttpProvider};
use innkeeper::{Config, Environment, Host};
use innkeeper_testkit::{
    Journal, Script, ScriptedLlm, ScriptedReply, fixture, fixture_program, mcp_json,
};
use innkeeper_toolcall::prompt::Template;
use innkeeper_toolcall::{Format, ModelFamily};
use innkeeper_toolcall::{Tool, Tools};
use mcp_host::{
    LlmProvider, LlmRequest, LlmResponse, McpHost, McpHostConfig, McpHostError, OllamaProvider,
    PromptTemplate, SafetyConfig, async_trait,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(30);

/// A tool that records its arguments.
#[derive(Default)]
struct FileTools(Mutex<Vec<Value>>);

impl ToolRunner for FileTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        let tool = |name| Tool::new(name, "Does it to a file.", schema.clone());
        let available_tool = |name| {
            let read_only = name == "fs.read";
            let annotations = ToolAnnotations { read_only, ..ToolAnnotations::default() };
            AvailableTool::new(tool(name), annotations)
        };
        ["fs.read", "fs.rm", "fs.format_text"].map(available_tool).into()
    }

    fn call_tool<'r>(
        &'r self,
        _: &'r str,
        arguments: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let arguments: Value = serde_json::from_str(arguments.get()).unwrap();
        self.0.lock().unwrap().push(arguments);
        let result = json!({"content": [{"type": "text", "text": "It is read."}]});
        let raw = serde_json::value::to_raw_value(&result).unwrap();
        Box::pin(async { Ok(ToolOutput::new(raw, false)) })
    }
}

fn file_tools() -> Arc<dyn ToolRunner> {
    Arc::new(FileTools::default())
}

/// Number of calls that reached the server.
fn call_count(journal: &Path) -> usize {
    Journal::read(journal).count("tools/call")
}

/// A scripted model that a test can inspect after the run.
#[derive(Clone)]
struct SharedProvider(Arc<ScriptedProvider>);

impl SharedProvider {
    fn new(model: &str, texts: &[&str]) -> Self {
        let replies: Vec<_> = texts.iter().map(|text| Ok(LlmResponse::from_text(*text))).collect();
        Self(Arc::new(
            ScriptedProvider::new(replies).with_model(model).with_capabilities(Default::default()),
        ))
    }

    fn system_prompts(&self) -> Vec<String> {
        self.0.requests().into_iter().map(|request| request.system).collect()
    }
}

#[async_trait]
impl LlmProvider for SharedProvider {
    async fn generate(&self, request: LlmRequest) -> mcp_host::Result<LlmResponse> {
        self.0.generate(request).await
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn model(&self) -> &str {
        self.0.model()
    }
}

/// Proves: P1, P15, P18
#[tokio::test]
async fn the_usage_of_the_document_runs_as_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal").display().to_string();
    let call = r#"{"tool": "echo", "params": {"message": "größer"}}"#;
    let llm =
        ScriptedLlm::start([ScriptedReply::text(call), ScriptedReply::text("It says: größer.")])
            .await;
    // Initialize MCP client
    let program = fixture_program().display().to_string();
    let mcp_client =
        mcp_client::McpClient::connect(&program, &["--journal", &journal]).await.unwrap();
    let mcp_client = Arc::new(mcp_client);
    // Create LLM provider
    let ollama =
        OllamaProvider::with_config("llama3.1:8b".to_owned(), llm.origin().to_owned(), TIMEOUT);
    // Build MCP host
    let mut host = McpHost::builder()
        .with_llm_provider(Box::new(ollama))
        .with_mcp_client(mcp_client.clone())
        .with_config(McpHostConfig::default())
        .build()
        .unwrap();
    // Process messages
    let response: String = host.process_message("Say it").await.unwrap();
    assert_eq!(response, "It says: größer.");
    assert_eq!(call_count(Path::new(&journal)), 1);
    let requests = llm.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].text.contains("größer"), "{}", requests[1].text);
    let last = requests[1].body["messages"].as_array().unwrap().last().unwrap().clone();
    assert!(last["content"].as_str().unwrap().contains("größer"), "{last}");
    mcp_client.close().await;
}

/// Proves: P14
#[tokio::test]
async fn the_client_executes_each_valid_call_once_and_no_invalid_one() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal").display().to_string();
    let program = fixture_program().display().to_string();
    let mcp_client =
        mcp_client::McpClient::connect(&program, &["--journal", &journal]).await.unwrap();
    let mcp_client = Arc::new(mcp_client);
    let replies = [
        r#"{"tool": "add", "params": {"a": 1}}"#,
        "{\"tool\": \"add\", \"params\": {\"a\": 1, \"b\": 2}}\n{\"tool\": \"echo\", \"params\": {\"message\": \"é\"}}",
        "Done.",
    ];
    let model = SharedProvider::new("any", &replies);
    let host = McpHost::builder().with_llm_provider(Box::new(model));
    let config = McpHostConfig { retry_delay_ms: 1, ..McpHostConfig::default() };
    let host = host.with_mcp_client(mcp_client.clone()).with_config(config);
    let mut host = host.build().unwrap();
    let response = host.process_message("Add, then say it").await.unwrap();
    assert_eq!(response, "Done.");
    let metrics = host.get_metrics();
    assert_eq!((&metrics["model"], &metrics["calls"]), (&json!("any"), &json!(2)), "{metrics}");
    let journal = Journal::read(Path::new(&journal));
    // The two calls of one response run at the same time.
    let mut calls: Vec<_> = journal
        .params("tools/call")
        .into_iter()
        .map(|params| (params["name"].clone(), params["arguments"].clone()))
        .collect();
    calls.sort_by_key(|(name, _)| name.to_string());
    let expected = [("add", json!({"a": 1, "b": 2})), ("echo", json!({"message": "é"}))];
    assert_eq!(calls, expected.map(|(name, arguments)| (json!(name), arguments)));
    mcp_client.close().await;
}

/// Proves: P25
#[tokio::test]
async fn llama_31_is_given_tools_until_its_server_refuses_them_and_others_never_are() {
    for (model, is_native) in [("llama3.1:8b", true), ("mistral:7b", false)] {
        let call = r#"{"name": "fs.read", "arguments": {"path": "a"}}"#;
        let refuses =
            ScriptedReply::status(400).with_error_message("llama3.1:8b does not support tools");
        let mut script = vec![ScriptedReply::text(call), ScriptedReply::text("Done.")];
        if is_native {
            script.insert(0, refuses);
        }
        let llm = ScriptedLlm::start(script).await;
        let ollama =
            OllamaProvider::with_config(model.to_owned(), llm.origin().to_owned(), TIMEOUT);
        let built =
            McpHost::builder().with_llm_provider(Box::new(ollama)).with_mcp_client(file_tools());
        let result = built.build().unwrap().process_message("Read a").await;
        assert_eq!(result.as_deref().ok(), Some("Done."), "{model}");
        let requests = llm.requests();
        assert_eq!(requests[0].body.get("tools").is_some(), is_native, "{model}");
        assert!(requests[1..].iter().all(|seen| seen.body.get("tools").is_none()), "{model}");
    }
}

/// Proves: P16, P28
#[tokio::test]
async fn ollama_is_made_of_the_name_of_its_model_and_asked_for_4096_tokens_at_most() {
    let ollama = OllamaProvider::new("llama3.1:8b".to_owned());
    assert_eq!((ollama.name(), ollama.model()), ("ollama", "llama3.1:8b"));
    assert!(ollama.supports_tools());
    for (limit, expected) in [(None, 4096), (Some(77), 77)] {
        let llm = ScriptedLlm::start([ScriptedReply::text("Hello.")]).await;
        let ollama =
            OllamaProvider::with_config("phi:3b".to_owned(), llm.origin().to_owned(), TIMEOUT);
        let mut config = McpHostConfig::default();
        if let Some(limit) = limit {
            config.safety_constraints.max_tokens_per_request = limit;
        }
        let host =
            McpHost::builder().with_llm_provider(Box::new(ollama)).with_mcp_client(file_tools());
        host.with_config(config).build().unwrap().process_message("Hi").await.unwrap();
        let sent = &llm.requests()[0];
        assert_eq!(sent.path, "/api/chat");
        assert_eq!(sent.body["options"]["num_predict"], json!(expected));
        assert_eq!(sent.body["options"]["temperature"], json!(0.7));
    }
}

/// Proves: P5
#[tokio::test]
async fn a_model_of_ones_own_is_one_function_and_a_name() {
    /// An implementation of the trait as in the document, with full type paths.
    struct Parrot;

    #[async_trait]
    impl LlmProvider for Parrot {
        async fn generate(&self, request: LlmRequest) -> mcp_host::Result<LlmResponse> {
            let text = request.to_prompt_text();
            Ok(LlmResponse::from_text(if text.contains("It is read.") {
                "So it is."
            } else {
                r#"{"tool": "fs.read", "params": {"path": "a"}}"#
            }))
        }
        fn name(&self) -> &str {
            "parrot"
        }
    }
    let takes: fn(&Parrot) -> bool = LlmProvider::supports_tools;
    assert!(!takes(&Parrot));
    let files = Arc::new(FileTools::default());
    let runner: Arc<dyn ToolRunner> = files.clone();
    let host = McpHost::builder().with_llm_provider(Box::new(Parrot)).with_mcp_client(runner);
    let response = host.build().unwrap().process_message("Read a.").await.unwrap();
    assert_eq!(response, "So it is.");
    assert_eq!(*files.0.lock().unwrap(), [json!({"path": "a"})]);
}

/// Proves: P17
#[test]
fn a_host_without_a_model_or_tools_is_an_error_that_says_what_to_call() {
    let full_builder = || {
        McpHost::builder()
            .with_llm_provider(Box::new(SharedProvider::new("m", &[])))
            .with_mcp_client(file_tools())
            .with_config(McpHostConfig::default())
    };
    assert!(full_builder().build().is_ok());
    let no_model = McpHost::builder().with_mcp_client(file_tools()).build().unwrap_err();
    assert!(matches!(no_model, McpHostError::NoProvider));
    assert!(no_model.to_string().contains("`with_llm_provider`"), "{no_model}");
    let model = Box::new(SharedProvider::new("m", &[]));
    let no_tools = McpHost::builder().with_llm_provider(model).build().unwrap_err();
    assert!(matches!(no_tools, McpHostError::NoClient));
    assert!(no_tools.to_string().contains("`with_mcp_client`"), "{no_tools}");
    let mut config = McpHostConfig::default();
    config.safety_constraints.blocked_tool_patterns = vec!["re:(".to_owned()];
    assert!(matches!(full_builder().with_config(config).build(), Err(McpHostError::Pattern(_))));
}

/// Proves: P19
#[tokio::test]
async fn a_server_takes_its_arguments_as_strings_of_either_kind() {
    let dir = tempfile::tempdir().unwrap();
    let program = fixture_program().display().to_string();
    let journal = dir.path().join("journal").display().to_string();
    let borrowed: &[&str] = &["--journal", &journal];
    let owned: &[String] = &["--journal".to_owned(), journal.clone()];
    for client in [
        mcp_client::McpClient::connect(&program, borrowed).await.unwrap(),
        mcp_client::McpClient::connect(&program, owned).await.unwrap(),
        mcp_client::McpClient::connect(&program, &["--journal", &journal]).await.unwrap(),
    ] {
        assert!(!client.server().list_tools().is_empty());
        client.close().await;
    }
    assert_eq!(Journal::read(Path::new(&journal)).pids().len(), 3);
}

/// Proves: P26, P27
#[tokio::test]
async fn the_prompt_is_that_of_the_models_family_whatever_its_tag() {
    let tools: Tools =
        file_tools().list_tools().into_iter().map(|available| available.tool).collect();
    let mut systems = Vec::new();
    for (model, family) in [
        ("mistral", ModelFamily::Mistral),
        ("mistral:7b-instruct", ModelFamily::Mistral),
        ("qwen2.5-coder:32b", ModelFamily::Qwen25Coder),
        ("something-else", ModelFamily::Generic),
    ] {
        let provider = SharedProvider::new(model, &["Hello."]);
        let host = McpHost::builder().with_llm_provider(Box::new(provider.clone()));
        let mut host =
            host.with_mcp_client(file_tools()).with_system_prompt("Be brief.").build().unwrap();
        host.process_message("Hi").await.unwrap();
        let expected = Template::for_family(family).system_prompt("Be brief.", &tools).unwrap();
        assert_eq!(provider.system_prompts(), [expected], "{model}");
        systems.extend(provider.system_prompts());
    }
    assert_eq!(systems[0], systems[1]);
    systems.dedup();
    assert_eq!(systems.len(), 3, "{systems:#?}");
}

/// Proves: P30, P31, P32
#[tokio::test]
async fn the_configuration_is_that_of_the_document_and_blocks_what_it_says() {
    let config = McpHostConfig {
        max_retries: 3,
        retry_delay_ms: 1000,
        temperature_reduction: 0.1,
        safety_constraints: SafetyConfig {
            max_tokens_per_request: 4096,
            max_tools_per_request: 5,
            rate_limit_per_minute: 30,
            blocked_tool_patterns: vec!["rm".to_owned()],
        },
    };
    assert_eq!(SafetyConfig::default().rate_limit_per_minute, 30);
    assert_eq!(SafetyConfig::default().blocked_tool_patterns, Vec::<String>::new());
    let mut default = McpHostConfig::default();
    default.safety_constraints.blocked_tool_patterns.push("rm".to_owned());
    assert_eq!(default, config);
    let provider = SharedProvider::new("m", &["Hello."]);
    let host = McpHost::builder().with_llm_provider(Box::new(provider.clone()));
    let host = host.with_mcp_client(file_tools()).with_config(config);
    host.build().unwrap().process_message("Hi").await.unwrap();
    let system = provider.system_prompts().remove(0);
    assert!(!system.contains("fs.rm") && system.contains("fs.format_text"), "{system}");
}

/// Proves: P33
#[tokio::test]
async fn a_custom_template_defines_how_tools_are_described_and_how_calls_are_read() {
    let template = PromptTemplate::new("custom-model")
        .with_family(ModelFamily::Qwen25Coder)
        .with_format(Format::from_name("hermes").unwrap())
        .with_layout(
            "{{ system }}\nTools:{% for tool in tools %} {{ tool.name }}{% endfor %}\n{{ form }}",
        )
        .unwrap();
    // The text contains calls in two formats; the parser accepts only the template's format.
    let calls = "<invoke name=\"fs.read\">\n<parameter name=\"path\">no</parameter>\n</invoke>\n<tool_call>\n{\"name\": \"fs.read\", \"arguments\": {\"path\": \"yes\"}}\n</tool_call>";
    let provider = SharedProvider::new("m", &[calls, "Done."]);
    let files = Arc::new(FileTools::default());
    let runner: Arc<dyn ToolRunner> = files.clone();
    let host =
        McpHost::builder().with_llm_provider(Box::new(provider.clone())).with_mcp_client(runner);
    let host = host.with_system_prompt("Be brief.").with_prompt_template(template);
    assert_eq!(host.build().unwrap().process_message("Read.").await.unwrap(), "Done.");
    assert_eq!(*files.0.lock().unwrap(), [json!({"path": "yes"})]);
    let system = provider.system_prompts().remove(0);
    assert!(system.starts_with("Be brief.\nTools: fs.read fs.rm fs.format_text\n"), "{system}");
    assert!(PromptTemplate::new("m").with_layout("{% for %}").is_err());
    let files = Arc::new(FileTools::default());
    let runner: Arc<dyn ToolRunner> = files.clone();
    let model = Box::new(SharedProvider::new("m", &[calls, "Done."]));
    let any = McpHost::builder().with_llm_provider(model).with_mcp_client(runner);
    any.build().unwrap().process_message("Read.").await.unwrap();
    assert_eq!(files.0.lock().unwrap().len(), 2, "in any format both are calls");
}

/// Proves: P-b1
#[tokio::test]
async fn a_model_of_each_provider_answers_a_message() {
    for api in ProviderApi::ALL {
        let call = r#"{"tool": "fs.read", "params": {"path": "a"}}"#;
        let replies = [ScriptedReply::text(call), ScriptedReply::text("It is a file.")];
        let llm = ScriptedLlm::start(Script::new(replies)).await;
        let endpoint = Endpoint { base_url: base_url(api, &llm), ..Endpoint::new("p", api, "any") };
        let files = Arc::new(FileTools::default());
        let runner: Arc<dyn ToolRunner> = files.clone();
        let host = McpHost::builder()
            .with_llm_provider(Box::new(HttpProvider::new(endpoint)))
            .with_mcp_client(runner);
        let answer = host.build().unwrap().process_message("Read.").await.unwrap();
        assert_eq!(answer, "It is a file.", "{api:?}");
        assert_eq!(*files.0.lock().unwrap(), [json!({"path": "a"})], "{api:?}");
    }
}

/// Returns the base URL as the SDK of the provider calls it.
fn base_url(api: ProviderApi, llm: &ScriptedLlm) -> String {
    match api {
        ProviderApi::OpenAiChat | ProviderApi::OpenAiResponses => format!("{}/v1", llm.origin()),
        ProviderApi::Anthropic
        | ProviderApi::GeminiGenerate
        | ProviderApi::GeminiInteractions
        | ProviderApi::Ollama => llm.origin().to_owned(),
    }
}

/// Proves: P-b3
#[tokio::test]
async fn the_same_call_of_a_tool_that_changes_nothing_runs_once_if_the_cache_is_enabled() {
    let same = ["read", "rm"].map(|tool| {
        let call = format!(r#"{{"tool": "fs.{tool}", "params": {{"path": "{tool}"}}}}"#);
        [call.clone(), call]
    });
    let replies: Vec<&str> = same.iter().flatten().map(String::as_str).chain(["Done."]).collect();
    for (cache, expected) in [
        (None, &["read", "read", "rm", "rm"][..]),
        (Some(CacheSettings::default()), &["read", "rm", "rm"]),
    ] {
        let files = Arc::new(FileTools::default());
        let runner: Arc<dyn ToolRunner> = files.clone();
        let model = Box::new(SharedProvider::new("m", &replies));
        let mut builder = McpHost::builder().with_llm_provider(model).with_mcp_client(runner);
        if let Some(cache) = cache {
            builder = builder.with_call_cache(cache);
        }
        assert_eq!(builder.build().unwrap().process_message("Do it.").await.unwrap(), "Done.");
        let paths: Vec<Value> =
            files.0.lock().unwrap().iter().map(|call| call["path"].clone()).collect();
        assert_eq!(paths, expected);
    }
}

/// Proves: P-b2
#[tokio::test]
async fn a_message_is_answered_chunk_by_chunk() {
    let call = r#"{"tool": "fs.read", "params": {"path": "a"}}"#;
    let llm = ScriptedLlm::start(
        Script::new([
            ScriptedReply::text(format!("I look.\n{call}")),
            ScriptedReply::text("It is a file."),
        ])
        .chunk_bytes(7),
    )
    .await;
    let ollama = OllamaProvider::with_config("phi:3b".to_owned(), llm.origin().to_owned(), TIMEOUT);
    let host = McpHost::builder().with_llm_provider(Box::new(ollama)).with_mcp_client(file_tools());
    let mut host = host.build().unwrap();
    let chunks: Vec<_> = host.process_message_stream("Read.").collect().await;
    let chunks: Vec<String> = chunks.into_iter().map(Result::unwrap).collect();
    assert!(chunks.len() > 2, "{chunks:?}");
    assert_eq!(chunks.concat().replace('\n', ""), "I look.It is a file.");
    assert!(llm.requests().iter().all(|request| request.body["stream"] == json!(true)));
}

/// Proves: P-b2
#[tokio::test]
async fn the_first_chunk_is_there_before_the_response_ends() {
    let text = "I look at the file now. ".repeat(50);
    let reply = ScriptedReply::text(text.clone()).stall_after(1000);
    let llm = ScriptedLlm::start(Script::new([reply]).chunk_bytes(7)).await;
    let ollama = OllamaProvider::with_config("phi:3b".to_owned(), llm.origin().to_owned(), TIMEOUT);
    let host = McpHost::builder().with_llm_provider(Box::new(ollama)).with_mcp_client(file_tools());
    let mut host = host.build().unwrap();
    let mut chunks = Box::pin(host.process_message_stream("Read."));
    let first = tokio::time::timeout(TIMEOUT, chunks.next()).await.unwrap().unwrap().unwrap();
    assert!(!first.is_empty() && text.starts_with(&first), "{first}");
}

/// Proves: G61
#[tokio::test]
async fn the_tools_of_a_server_called_stdio_have_their_names_over_each_wire_and_back() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let config = mcp_json([fixture("stdio").journal(&journal)]);
    let environment = Environment::from_process();
    let config = Config::from_value(&config, "mcp.json", Path::new("/"), &environment).unwrap();
    let host = Host::start(config).await.unwrap();
    for api in ProviderApi::ALL {
        let call = ScriptedReply::tool_call("stdio_echo", json!({"message": "there and back"}));
        let llm = ScriptedLlm::start([call, ScriptedReply::text("Done.")]).await;
        let endpoint = Endpoint { base_url: base_url(api, &llm), ..Endpoint::new("p", api, "any") };
        let provider = Arc::new(HttpProvider::new(endpoint));
        let agent = Agent::new(provider, Arc::new(host.clone()), AgentSettings::default());
        let report = agent.run("Say it").await;
        assert_eq!(report.text, "Done.", "{api:?}: {report:?}");
        assert_eq!(report.tool_calls[0].tool, "stdio.echo", "{api:?}");
        for request in llm.requests() {
            assert!(request.text.contains("stdio_echo"), "{api:?}: {}", request.text);
            assert!(!request.text.contains("stdio.echo"), "{api:?}: {}", request.text);
        }
        assert!(llm.requests()[1].text.contains("there and back"), "{api:?}");
    }
    host.shutdown().await;
    assert_eq!(call_count(&journal), ProviderApi::ALL.len());
}
