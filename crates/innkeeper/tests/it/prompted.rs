//! Document 004's names, as its page uses them: a model behind HTTP, a server behind pipes.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use innkeeper::agent::{Agent, Settings};
use innkeeper::compat as mcp_client;
use innkeeper::compat as mcp_host;
use innkeeper::provider::{Scripted, Wire};
use innkeeper::toolcall::prompt::Template;
use innkeeper::toolcall::{Family, Format};
use innkeeper::toolcall::{Tool, Tools};
use innkeeper::tools::{Hints, Offered, Output, Running, ToolRunner};
use innkeeper::transport::{Endpoint, HttpProvider};
use innkeeper::{Config, Environment, Host};
use innkeeper_testkit::{Journal, Script, ScriptedLlm, Step, fx, fx_program, mcp_json};
use mcp_host::{
    LlmProvider, LlmRequest, LlmResponse, McpHost, McpHostConfig, McpHostError, OllamaProvider,
    PromptTemplate, SafetyConfig, async_trait,
};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(30);

/// One tool, and what it was called with.
#[derive(Default)]
struct Files(Mutex<Vec<Value>>);

impl ToolRunner for Files {
    fn offered(&self) -> Vec<Offered> {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        let tool = |name| Tool::new(name, "Does it to a file.", schema.clone());
        let offered = |name| Offered { tool: tool(name), hints: Hints::default() };
        ["fs.read", "fs.rm", "fs.format_text"].map(offered).into()
    }

    fn run<'r>(&'r self, _: &'r str, arguments: Value) -> Running<'r> {
        self.0.lock().unwrap().push(arguments);
        let result = json!({"content": [{"type": "text", "text": "It is read."}]});
        let raw = serde_json::value::to_raw_value(&result).unwrap();
        Box::pin(async { Ok(Output::new(raw, false)) })
    }
}

fn files() -> Arc<dyn ToolRunner> {
    Arc::new(Files::default())
}

/// How many calls reached the server.
fn calls(journal: &Path) -> usize {
    Journal::read(journal).count("tools/call")
}

/// A model that says these, and can be looked at afterwards.
#[derive(Clone)]
struct Told(Arc<Scripted>);

impl Told {
    fn new(model: &str, texts: &[&str]) -> Self {
        let replies: Vec<_> = texts.iter().map(|text| Ok(LlmResponse::text(*text))).collect();
        Self(Arc::new(Scripted::new(replies).as_model(model).taking(Default::default())))
    }

    fn systems(&self) -> Vec<String> {
        self.0.asked().into_iter().map(|request| request.system).collect()
    }
}

#[async_trait]
impl LlmProvider for Told {
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
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal").display().to_string();
    let call = r#"I look. {"tool": "echo", "params": {"message": "größer"}}"#;
    let llm = ScriptedLlm::start([Step::say(call), Step::say("It says: größer.")]).await;
    // Initialize MCP client
    let program = fx_program().display().to_string();
    let mcp_client =
        mcp_client::McpClient::connect(&program, &["--journal", &journal]).await.unwrap();
    let mcp_client = Arc::new(mcp_client);
    // Create LLM provider
    let ollama =
        OllamaProvider::with_config("llama3.1:8b".to_owned(), llm.origin().to_owned(), LIMIT);
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
    assert_eq!(calls(Path::new(&journal)), 1);
    let asked = llm.requests();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].text.contains("größer"), "{}", asked[1].text);
    let last = asked[1].body["messages"].as_array().unwrap().last().unwrap().clone();
    assert!(last["content"].as_str().unwrap().contains("größer"), "{last}");
    mcp_client.close().await;
}

/// Proves: P25
#[tokio::test]
async fn llama_31_is_given_tools_until_its_server_refuses_them_and_others_never_are() {
    for (model, given) in [("llama3.1:8b", true), ("mistral:7b", false)] {
        let call = r#"{"name": "fs.read", "arguments": {"path": "a"}}"#;
        let refuses = Step::status(400).error("llama3.1:8b does not support tools");
        let mut script = vec![Step::say(call), Step::say("Done.")];
        if given {
            script.insert(0, refuses);
        }
        let llm = ScriptedLlm::start(script).await;
        let ollama = OllamaProvider::with_config(model.to_owned(), llm.origin().to_owned(), LIMIT);
        let built = McpHost::builder().with_llm_provider(Box::new(ollama)).with_mcp_client(files());
        let told = built.build().unwrap().process_message("Read a").await;
        assert_eq!(told.as_deref().ok(), Some("Done."), "{model}");
        let asked = llm.requests();
        assert_eq!(asked[0].body.get("tools").is_some(), given, "{model}");
        assert!(asked[1..].iter().all(|seen| seen.body.get("tools").is_none()), "{model}");
    }
}

/// Proves: P16, P28
#[tokio::test]
async fn ollama_is_made_of_the_name_of_its_model_and_asked_for_4096_tokens_at_most() {
    let ollama = OllamaProvider::new("llama3.1:8b".to_owned());
    assert_eq!((ollama.name(), ollama.model()), ("ollama", "llama3.1:8b"));
    assert!(ollama.supports_tools());
    for (limit, wanted) in [(None, 4096), (Some(77), 77)] {
        let llm = ScriptedLlm::start([Step::say("Hello.")]).await;
        let ollama =
            OllamaProvider::with_config("phi:3b".to_owned(), llm.origin().to_owned(), LIMIT);
        let mut config = McpHostConfig::default();
        if let Some(limit) = limit {
            config.safety_constraints.max_tokens_per_request = limit;
        }
        let host = McpHost::builder().with_llm_provider(Box::new(ollama)).with_mcp_client(files());
        host.with_config(config).build().unwrap().process_message("Hi").await.unwrap();
        let sent = &llm.requests()[0];
        assert_eq!(sent.path, "/api/chat");
        assert_eq!(sent.body["options"]["num_predict"], json!(wanted));
        assert_eq!(sent.body["options"]["temperature"], json!(0.7));
    }
}

/// Proves: P5
#[tokio::test]
async fn a_model_of_ones_own_is_one_function_and_a_name() {
    /// The trait as the document has it, every type in its place.
    struct Parrot;

    #[async_trait]
    impl LlmProvider for Parrot {
        async fn generate(&self, request: LlmRequest) -> mcp_host::Result<LlmResponse> {
            let said = request.prompt();
            Ok(LlmResponse::text(if said.contains("It is read.") {
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
    let files = Arc::new(Files::default());
    let runner: Arc<dyn ToolRunner> = files.clone();
    let host = McpHost::builder().with_llm_provider(Box::new(Parrot)).with_mcp_client(runner);
    let said = host.build().unwrap().process_message("Read a.").await.unwrap();
    assert_eq!(said, "So it is.");
    assert_eq!(*files.0.lock().unwrap(), [json!({"path": "a"})]);
}

/// Proves: P17
#[test]
fn a_host_without_a_model_or_tools_is_an_error_that_says_what_to_call() {
    let whole = || {
        McpHost::builder()
            .with_llm_provider(Box::new(Told::new("m", &[])))
            .with_mcp_client(files())
            .with_config(McpHostConfig::default())
    };
    assert!(whole().build().is_ok());
    let no_model = McpHost::builder().with_mcp_client(files()).build().unwrap_err();
    assert!(matches!(no_model, McpHostError::NoProvider));
    assert!(no_model.to_string().contains("`with_llm_provider`"), "{no_model}");
    let model = Box::new(Told::new("m", &[]));
    let no_tools = McpHost::builder().with_llm_provider(model).build().unwrap_err();
    assert!(matches!(no_tools, McpHostError::NoClient));
    assert!(no_tools.to_string().contains("`with_mcp_client`"), "{no_tools}");
    let mut config = McpHostConfig::default();
    config.safety_constraints.blocked_tool_patterns = vec!["re:(".to_owned()];
    assert!(matches!(whole().with_config(config).build(), Err(McpHostError::Pattern(_))));
}

/// Proves: P19
#[tokio::test]
async fn a_server_takes_its_arguments_as_texts_of_either_kind() {
    let folder = tempfile::tempdir().unwrap();
    let program = fx_program().display().to_string();
    let journal = folder.path().join("journal").display().to_string();
    let borrowed: &[&str] = &["--journal", &journal];
    let owned: &[String] = &["--journal".to_owned(), journal.clone()];
    for client in [
        mcp_client::McpClient::connect(&program, borrowed).await.unwrap(),
        mcp_client::McpClient::connect(&program, owned).await.unwrap(),
        mcp_client::McpClient::connect(&program, &["--journal", &journal]).await.unwrap(),
    ] {
        assert!(!client.server().offered().is_empty());
        client.close().await;
    }
    assert_eq!(Journal::read(Path::new(&journal)).pids().len(), 3);
}

/// Proves: P26, P27
#[tokio::test]
async fn the_prompt_is_that_of_the_models_family_whatever_its_tag() {
    let tools: Tools = files().offered().into_iter().map(|offered| offered.tool).collect();
    let mut systems = Vec::new();
    for (model, family) in [
        ("mistral", Family::Mistral),
        ("mistral:7b-instruct", Family::Mistral),
        ("qwen2.5-coder:32b", Family::Qwen25Coder),
        ("something-else", Family::Generic),
    ] {
        let told = Told::new(model, &["Hello."]);
        let host = McpHost::builder().with_llm_provider(Box::new(told.clone()));
        let mut host =
            host.with_mcp_client(files()).with_system_prompt("Be brief.").build().unwrap();
        host.process_message("Hi").await.unwrap();
        let wanted = Template::of_family(family).enhance("Be brief.", &tools).unwrap();
        assert_eq!(told.systems(), [wanted], "{model}");
        systems.extend(told.systems());
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
    let told = Told::new("m", &["Hello."]);
    let host = McpHost::builder().with_llm_provider(Box::new(told.clone()));
    let host = host.with_mcp_client(files()).with_config(config);
    host.build().unwrap().process_message("Hi").await.unwrap();
    let system = told.systems().remove(0);
    assert!(!system.contains("fs.rm") && system.contains("fs.format_text"), "{system}");
}

/// Proves: P33
#[tokio::test]
async fn a_template_of_ones_own_says_how_tools_are_told_and_how_calls_are_read() {
    let template = PromptTemplate::new("custom-model")
        .with_family(Family::Qwen25Coder)
        .with_format(Format::named("hermes").unwrap())
        .with_layout(
            "{{ system }}\nTools:{% for tool in tools %} {{ tool.name }}{% endfor %}\n{{ form }}",
        )
        .unwrap();
    // Of calls in two formats only the one in the template's is one.
    let said = "<invoke name=\"fs.read\">\n<parameter name=\"path\">no</parameter>\n</invoke>\n<tool_call>\n{\"name\": \"fs.read\", \"arguments\": {\"path\": \"yes\"}}\n</tool_call>";
    let told = Told::new("m", &[said, "Done."]);
    let files = Arc::new(Files::default());
    let runner: Arc<dyn ToolRunner> = files.clone();
    let host = McpHost::builder().with_llm_provider(Box::new(told.clone())).with_mcp_client(runner);
    let host = host.with_system_prompt("Be brief.").with_prompt_template(template);
    assert_eq!(host.build().unwrap().process_message("Read.").await.unwrap(), "Done.");
    assert_eq!(*files.0.lock().unwrap(), [json!({"path": "yes"})]);
    let system = told.systems().remove(0);
    assert!(system.starts_with("Be brief.\nTools: fs.read fs.rm fs.format_text\n"), "{system}");
    assert!(PromptTemplate::new("m").with_layout("{% for %}").is_err());
    let files = Arc::new(Files::default());
    let runner: Arc<dyn ToolRunner> = files.clone();
    let model = Box::new(Told::new("m", &[said, "Done."]));
    let any = McpHost::builder().with_llm_provider(model).with_mcp_client(runner);
    any.build().unwrap().process_message("Read.").await.unwrap();
    assert_eq!(files.0.lock().unwrap().len(), 2, "in any format both are calls");
}

/// Proves: P-b2
#[tokio::test]
async fn a_message_is_answered_piece_by_piece() {
    let call = r#"{"tool": "fs.read", "params": {"path": "a"}}"#;
    let llm = ScriptedLlm::start(
        Script::new([Step::say(format!("I look.\n{call}")), Step::say("It is a file.")]).chunks(7),
    )
    .await;
    let ollama = OllamaProvider::with_config("phi:3b".to_owned(), llm.origin().to_owned(), LIMIT);
    let host = McpHost::builder().with_llm_provider(Box::new(ollama)).with_mcp_client(files());
    let mut host = host.build().unwrap();
    let pieces: Vec<_> = host.process_message_stream("Read.").collect().await;
    let pieces: Vec<String> = pieces.into_iter().map(Result::unwrap).collect();
    assert!(pieces.len() > 2, "{pieces:?}");
    let text = pieces.concat();
    assert!(text.starts_with("I look.") && text.ends_with("It is a file."), "{text}");
    assert!(!text.contains("params"), "{text}");
    assert!(llm.requests().iter().all(|request| request.body["stream"] == json!(true)));
}

/// Proves: G61
#[tokio::test]
async fn the_tools_of_a_server_called_stdio_have_their_names_over_each_wire_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let config = mcp_json([fx("stdio").journal(&journal)]);
    let environment = Environment::of_process();
    let config = Config::from_value(&config, "mcp.json", Path::new("/"), &environment).unwrap();
    let host = Host::start(config).await.unwrap();
    for wire in Wire::ALL {
        let call = Step::call("stdio_echo", json!({"message": "there and back"}));
        let llm = ScriptedLlm::start([call, Step::say("Done.")]).await;
        let base_url = match wire {
            Wire::OpenAiChat | Wire::OpenAiResponses => format!("{}/v1", llm.origin()),
            Wire::Anthropic | Wire::GeminiGenerate | Wire::GeminiInteractions | Wire::Ollama => {
                llm.origin().to_owned()
            }
        };
        let endpoint = Endpoint { base_url, ..Endpoint::new("p", wire, "any") };
        let provider = Arc::new(HttpProvider::new(endpoint));
        let mut agent = Agent::new(provider, Arc::new(host.clone()), Settings::default());
        let report = agent.run("Say it").await;
        assert_eq!(report.text, "Done.", "{wire:?}: {report:?}");
        assert_eq!(report.steps[0].tool, "stdio.echo", "{wire:?}");
        for request in llm.requests() {
            assert!(request.text.contains("stdio_echo"), "{wire:?}: {}", request.text);
            assert!(!request.text.contains("stdio.echo"), "{wire:?}: {}", request.text);
        }
        assert!(llm.requests()[1].text.contains("there and back"), "{wire:?}");
    }
    host.shutdown().await;
    assert_eq!(calls(&journal), Wire::ALL.len());
}
