//! API keys appear in the request header only, never in output.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, LazyLock, Mutex, Once, PoisonError};
use std::time::Duration;

use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::chat::event_log::LogAnalyzer;
use innkeeper_agent::chat::{self, Chat, LogConfig};
use innkeeper_agent::provider::{ProviderApi, Response, ScriptedProvider};
use innkeeper_agent::run::RunOutcome;
use innkeeper_agent::run_json::{RunContext, RunJson};
use innkeeper_agent::safety::ApprovalPolicy;
use innkeeper_agent::tools::{
    AvailableTool, ToolAnnotations, ToolCallFuture, ToolCallOptions, ToolError, ToolOutput,
    ToolRunner,
};
use innkeeper_agent::transport::{
    Endpoint, HttpProvider, ModelSelector, ProviderId, get_llm_client,
};
use innkeeper_host::Environment;
use innkeeper_host::audit::TARGET;
use innkeeper_host::config::Secret;
use innkeeper_host::error::{CallError, ProtocolError, UnavailableReason, Violation};
use innkeeper_protocol::ErrorObject;
use innkeeper_testkit::{Script, ScriptedLlm, ScriptedReply};
use innkeeper_toolcall::Tool;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use crate::setup::{CollectedResponse, audit_hash};

const KEY: &str = "sk-planted-7Qw3zR9tYb5Nc1Xe";

/// The text of all log events and panics of the process.
#[derive(Clone, Default)]
struct LogCapture(Arc<Mutex<String>>);

static LOG_CAPTURE: LazyLock<LogCapture> = LazyLock::new(LogCapture::default);
static INSTALL_ONCE: Once = Once::new();

impl LogCapture {
    fn add(&self, text: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_str(text);
        all.push('\n');
    }

    fn all(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The fields of one log event as text.
struct EventText(String);

impl Visit for EventText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl<S: tracing::Subscriber> Layer<S> for LogCapture {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut line = EventText(event.metadata().target().to_owned());
        event.record(&mut line);
        self.add(&line.0);
    }

    fn on_new_span(&self, span: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let mut line = EventText(span.metadata().target().to_owned());
        span.record(&mut line);
        self.add(&line.0);
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut line = EventText(String::new());
        values.record(&mut line);
        self.add(&line.0);
    }
}

impl log::Log for LogCapture {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        self.add(&format!("{}: {}", record.target(), record.args()));
    }

    fn flush(&self) {}
}

/// Installs the capture for the whole process: `tracing` and `log` events at every level, and panic
/// messages.
fn install_capture() -> &'static LogCapture {
    INSTALL_ONCE.call_once(|| {
        tracing::subscriber::set_global_default(
            tracing_subscriber::registry().with(LOG_CAPTURE.clone()),
        )
        .unwrap();
        log::set_logger(&*LOG_CAPTURE).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            LOG_CAPTURE.add(&panic.to_string());
            before(panic);
        }));
    });
    &LOG_CAPTURE
}

/// A tool that panics.
struct PanickingTool;

impl ToolRunner for PanickingTool {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let schema = json!({"type": "object"});
        vec![AvailableTool::new(
            Tool::new("vault.open", "Reads.", schema),
            ToolAnnotations::default(),
        )]
    }

    fn call_tool<'r>(
        &'r self,
        _: &'r str,
        _: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        Box::pin(async { panic!("the tool fell over") })
    }
}

/// Provider behaviours that reveal the key, and behaviours that do not.
fn scripts() -> Vec<(&'static str, Vec<ScriptedReply>)> {
    let long = format!("{} {KEY}", "x".repeat(1990));
    let call = ScriptedReply::tool_call("vault.open", json!({}));
    vec![
        ("answers", vec![ScriptedReply::text("Hello.")]),
        ("calls a tool that panics", vec![call, ScriptedReply::text("Oh.")]),
        (
            "knows no such key",
            vec![ScriptedReply::status(401).with_error_message(format!("Incorrect key: {KEY}."))],
        ),
        ("cuts it", vec![ScriptedReply::status(400).with_error_message(long)]),
        (
            "fails in words",
            vec![ScriptedReply::raw(502, "text/html", format!("<p>Bearer {KEY}</p>"))],
        ),
        (
            "answers in words",
            vec![ScriptedReply::raw(200, "application/json", format!("{KEY} {{"))],
        ),
        (
            "answers strangely",
            vec![ScriptedReply::raw(200, "text/event-stream", format!("data: {KEY}\n\n"))],
        ),
        (
            "fails on its way",
            vec![ScriptedReply::text("Half").with_stream_error(format!("lost {KEY}"))],
        ),
        ("breaks off", vec![ScriptedReply::text("Half an answer").disconnect_after(40)]),
        (
            "writes no call",
            vec![
                ScriptedReply::status(500).with_error_message(format!(
                    r#"error parsing tool call: raw='{{"a": {KEY}', err=x"#
                )),
                ScriptedReply::text("Hello."),
            ],
        ),
    ]
}

fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        write!(text, " <- {cause} {cause:?}").unwrap();
        source = cause.source();
    }
    text
}

/// Attack: secrets | a provider repeats the API key in responses, errors and broken streams | no
/// log, error or record contains the key | Secrets do not print
#[tokio::test]
async fn a_key_is_in_no_log_no_error_no_record_and_no_panic_whatever_its_provider_does() {
    let capture = install_capture();
    for api in ProviderApi::ALL {
        for (case, script) in scripts() {
            for streaming in [false, true] {
                let llm = ScriptedLlm::start(Script::new(script.clone())).await;
                let base_url = match api {
                    ProviderApi::OpenAiChat | ProviderApi::OpenAiResponses => {
                        format!("{}/v1", llm.origin())
                    }
                    ProviderApi::Anthropic
                    | ProviderApi::GeminiGenerate
                    | ProviderApi::GeminiInteractions
                    | ProviderApi::Ollama => llm.origin().to_owned(),
                };
                let key = Some(Secret::new(KEY));
                let endpoint = Endpoint { base_url, key, ..Endpoint::new("p", api, "m") };
                let provider = Arc::new(HttpProvider::new(endpoint.clone()));
                let retry_budget = u32::from(case == "writes no call");
                let mut settings = AgentSettings::default();
                settings.limits.retry_budget = retry_budget;
                settings.limits.retry_delay = Duration::from_millis(1);
                let agent = Agent::new(provider.clone(), Arc::new(PanickingTool), settings);
                let mut output = String::new();
                let report = if streaming {
                    agent.run_streaming("Hi", |event| write!(output, "{event:?}").unwrap()).await
                } else {
                    agent.run("Hi").await
                };
                write!(output, "{report:?} {agent:?} {provider:?} {endpoint:?}").unwrap();
                write!(output, "{:?}", agent.conversation()).unwrap();
                if let RunOutcome::Failed(error) = &report.outcome {
                    output.push_str(&error_chain(error));
                }
                let conversation = agent.conversation();
                let context = RunContext {
                    provider: "test",
                    model: "test",
                    system: "",
                    conversation: &conversation,
                    tools_discovered: 1,
                    servers_connected: 1,
                };
                let outcome = RunJson::new(&report, &context);
                output.push_str(&serde_json::to_string(&outcome).unwrap());
                assert!(!output.contains(&KEY[3..]), "{api:?} {case} {streaming}: {output}");
                let sent = llm.requests();
                let key_headers = sent[0].headers.iter().filter(|(_, value)| value.contains(KEY));
                assert_eq!(key_headers.count(), 1, "{api:?} {case}");
                assert!(!sent[0].text.contains(KEY) && !sent[0].query.contains(KEY), "{api:?}");
            }
        }
    }
    let all = capture.all();
    for source in ["hyper", "reqwest", "tool_executed", "the tool fell over"] {
        assert!(all.contains(source), "nothing was heard of {source}");
    }
    let at = all.find(&KEY[3..]).map(|at| &all[at.saturating_sub(300)..]);
    assert_eq!(at, None);
}

/// Tools whose results and errors contain the key in every possible place.
struct LeakingTools;

impl ToolRunner for LeakingTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let mut tools = vec![("refuse", json!({})), ("lose", json!({})), ("break", json!({}))];
        tools.extend([("misfit", json!({})), ("tell", json!({}))]);
        tools.push(("choose", json!({"to": {"enum": ["up", "down"]}})));
        let available_tool = |(name, properties)| {
            let schema = json!({"type": "object", "properties": properties});
            AvailableTool::new(Tool::new(name, "Talks.", schema), ToolAnnotations::default())
        };
        tools.into_iter().map(available_tool).collect()
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        _: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let (server, item): (Arc<str>, Box<str>) = ("gossip".into(), name.into());
        let result = json!({"content": [{"type": "text", "text": KEY}], "isError": true});
        Box::pin(async move {
            let error = match name {
                "refuse" => {
                    let error = ErrorObject { code: -32602, message: KEY.to_owned(), data: None };
                    CallError::Server { server, item, error }
                }
                "lose" => {
                    let reason = UnavailableReason::NotStarted(KEY.into());
                    CallError::Unavailable { server, reason, may_have_run: false, attempts: 1 }
                }
                "break" => {
                    let source = ProtocolError::HttpStatus { status: 500, body: KEY.into() };
                    CallError::Protocol { server, item, source }
                }
                "misfit" => {
                    let problem = Violation { pointer: KEY.into(), message: KEY.into() };
                    CallError::Validation { item, problems: vec![problem] }
                }
                _ => return Ok(ToolOutput::new(to_raw_value(&result).unwrap(), true)),
            };
            Err(ToolError::Host(error))
        })
    }
}

/// Attack: secrets | a model and tools repeat the API key in calls and results | no log contains
/// the key | Secrets do not print
#[tokio::test]
async fn a_key_that_models_and_tools_say_is_in_no_log_of_a_chat() {
    let capture = install_capture();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let log_config = LogConfig {
        log_path: Some(path.clone()),
        token_classifications: false,
        performance_metrics: true,
    };
    let settings = chat::ChatSettings { log_config, ..chat::ChatSettings::default() };
    let chat = Chat::new(Arc::new(LeakingTools), settings).unwrap();
    let tools = ["refuse", "lose", "break", "misfit", "tell", "choose"];
    let mut text = format!("It is {KEY}.");
    for tool in tools {
        let call = json!({"tool": tool, "params": {"to": KEY, KEY: KEY}});
        text.push_str(&format!(" {call}\n"));
    }
    let number = KEY.bytes().map(|byte| byte.to_string()).collect::<String>();
    text.push_str(&format!(r#"{{"tool": "tell", "params": {{"to": {number}}}}}"#));
    let chunks = futures_util::stream::iter([text]);
    let all =
        CollectedResponse::collect(&mut chat.start_run().read_response(chunks).unwrap()).await;
    assert_eq!(all.executions.len(), tools.len() + 1);
    let log = std::fs::read_to_string(&path).unwrap();
    let stats = LogAnalyzer::from_file(&path).unwrap();
    for tool in tools {
        assert!(stats.tool_execution_stats()[tool].errors > 0, "{tool}: {log}");
    }
    for output in [log, capture.all()] {
        assert!(!output.contains(&KEY[3..]) && !output.contains(&number[..20]), "{output}");
    }
}

/// Proves: P35
#[tokio::test]
async fn each_call_leaves_a_line_with_its_tool_its_end_and_the_hash_of_its_arguments_alone() {
    let capture = install_capture();
    let arguments = r#"{"password":"open sesame"}"#;
    let model = ScriptedProvider::new([
        Ok(Response::from_tool_calls([
            ("vault.open", arguments),
            ("vault.open", r#"{"password":"else"}"#),
        ])),
        Ok(Response::from_text("Done.")),
    ]);
    let settings =
        AgentSettings { approval_policy: ApprovalPolicy::DenyAll, ..AgentSettings::default() };
    Agent::new(Arc::new(model), Arc::new(PanickingTool), settings).run("Read.").await;
    let all = capture.all();
    let hash = audit_hash(arguments);
    let lines: Vec<_> = all
        .lines()
        .filter(|entry| entry.contains("refused") && entry.contains("vault.open"))
        .collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines.iter().all(|line| line.starts_with(TARGET)), "{lines:#?}");
    let line = lines[0];
    for field in ["audit=\"tool_executed\"", "tool=\"vault.open\"", "outcome=\"refused\""] {
        assert!(line.contains(field), "{field} in {line}");
    }
    assert!(line.contains(&format!("arguments_sha256=\"{hash}\"")), "{line}");
    assert!(!lines[1].contains(&hash), "{lines:#?}");
    assert!(!all.contains("sesame") && !all.contains("password"));
}

#[test]
fn a_client_selected_by_name_does_not_show_its_key() {
    let environment = Environment::from_pairs([("OPENAI_API_KEY", KEY)]);
    let selector = ModelSelector {
        provider: ProviderId::OpenAi.name().to_owned(),
        key: Some(Secret::new(KEY)),
        ..ModelSelector::default()
    };
    let base_url = Some(format!("https://user:{KEY}@example.com/v1?key={KEY}"));
    let with_base_url = ModelSelector { base_url, ..selector.clone() };
    let client = get_llm_client(&with_base_url, &environment).unwrap();
    let wrong = ModelSelector { provider: "none".to_owned(), ..selector.clone() };
    let error = get_llm_client(&wrong, &environment).unwrap_err();
    let output = format!("{selector:?} {client:?} {error} {error:?} {:?}", client.endpoint());
    assert!(!output.contains(&KEY[3..]), "{output}");
}
