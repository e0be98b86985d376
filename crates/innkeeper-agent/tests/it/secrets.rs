//! A key is looked for in everything that is told: it is only ever in the request's own header.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, LazyLock, Mutex, Once, PoisonError};
use std::time::Duration;

use innkeeper_agent::agent::{Agent, Settings};
use innkeeper_agent::chat::record::LogAnalyzer;
use innkeeper_agent::chat::{self, Chat, Recording};
use innkeeper_agent::provider::{Response, Scripted, Wire};
use innkeeper_agent::result::Outcome;
use innkeeper_agent::safety::Policy;
use innkeeper_agent::tools::{Hints, Offered, Output, RunError, Running, ToolRunner};
use innkeeper_agent::transport::{Endpoint, HttpProvider, Named, Wanted, get_llm_client};
use innkeeper_agent::turn::{Ended, Limits};
use innkeeper_host::Environment;
use innkeeper_host::audit::TARGET;
use innkeeper_host::config::Secret;
use innkeeper_host::error::{ArgumentProblem, CallError, Lost, ProtocolFault};
use innkeeper_protocol::ErrorObject;
use innkeeper_testkit::{Script, ScriptedLlm, Step};
use innkeeper_toolcall::Tool;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use crate::setup::All;

const KEY: &str = "sk-planted-7Qw3zR9tYb5Nc1Xe";

/// Everything that is logged or panicked, by whomever.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<String>>);

static HEARD: LazyLock<Heard> = LazyLock::new(Heard::default);
static LISTENING: Once = Once::new();

impl Heard {
    fn add(&self, text: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_str(text);
        all.push('\n');
    }

    fn all(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One line of a log.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl<S: tracing::Subscriber> Layer<S> for Heard {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut line = Line(event.metadata().target().to_owned());
        event.record(&mut line);
        self.add(&line.0);
    }

    fn on_new_span(&self, span: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let mut line = Line(span.metadata().target().to_owned());
        span.record(&mut line);
        self.add(&line.0);
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut line = Line(String::new());
        values.record(&mut line);
        self.add(&line.0);
    }
}

impl log::Log for Heard {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        self.add(&format!("{}: {}", record.target(), record.args()));
    }

    fn flush(&self) {}
}

/// From here on, for the whole program: what is logged with `tracing` or with `log`, at every level,
/// and what panics say.
fn listen() -> &'static Heard {
    LISTENING.call_once(|| {
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(HEARD.clone()))
            .unwrap();
        log::set_logger(&*HEARD).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            HEARD.add(&panic.to_string());
            before(panic);
        }));
    });
    &HEARD
}

/// A tool that panics.
struct Clumsy;

impl ToolRunner for Clumsy {
    fn offered(&self) -> Vec<Offered> {
        let schema = json!({"type": "object"});
        vec![Offered { tool: Tool::new("vault.open", "Reads.", schema), hints: Hints::default() }]
    }

    fn run<'r>(&'r self, _: &'r str, _: Value) -> Running<'r> {
        Box::pin(async { panic!("the tool fell over") })
    }
}

/// What a provider does that tells the key, and what does not.
fn scripts() -> Vec<(&'static str, Vec<Step>)> {
    let long = format!("{} {KEY}", "x".repeat(1990));
    let call = Step::call("vault.open", json!({}));
    vec![
        ("answers", vec![Step::say("Hello.")]),
        ("calls a tool that panics", vec![call, Step::say("Oh.")]),
        ("knows no such key", vec![Step::status(401).error(format!("Incorrect key: {KEY}."))]),
        ("cuts it", vec![Step::status(400).error(long)]),
        ("fails in words", vec![Step::raw(502, "text/html", format!("<p>Bearer {KEY}</p>"))]),
        ("answers in words", vec![Step::raw(200, "application/json", format!("{KEY} {{"))]),
        (
            "answers strangely",
            vec![Step::raw(200, "text/event-stream", format!("data: {KEY}\n\n"))],
        ),
        ("fails on its way", vec![Step::say("Half").ends_in_error(format!("lost {KEY}"))]),
        ("breaks off", vec![Step::say("Half an answer").breaks_off_after(40)]),
        (
            "writes no call",
            vec![
                Step::status(500)
                    .error(format!(r#"error parsing tool call: raw='{{"a": {KEY}', err=x"#)),
                Step::say("Hello."),
            ],
        ),
    ]
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut told = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(behind) = source {
        write!(told, " <- {behind} {behind:?}").unwrap();
        source = behind.source();
    }
    told
}

#[tokio::test]
async fn a_key_is_in_no_log_no_error_no_record_and_no_panic_whatever_its_provider_does() {
    let heard = listen();
    for wire in Wire::ALL {
        for (what, script) in scripts() {
            for streaming in [false, true] {
                let llm = ScriptedLlm::start(Script::new(script.clone())).await;
                let base_url = match wire {
                    Wire::OpenAiChat | Wire::OpenAiResponses => format!("{}/v1", llm.origin()),
                    Wire::Anthropic
                    | Wire::GeminiGenerate
                    | Wire::GeminiInteractions
                    | Wire::Ollama => llm.origin().to_owned(),
                };
                let key = Some(Secret::new(KEY));
                let endpoint = Endpoint { base_url, key, ..Endpoint::new("p", wire, "m") };
                let provider = Arc::new(HttpProvider::new(endpoint.clone()));
                let retry_budget = u32::from(what == "writes no call");
                let limits = Limits { retry_budget, ..Limits::default() };
                let retry_delay = Duration::from_millis(1);
                let settings = Settings { limits, retry_delay, ..Settings::default() };
                let mut agent = Agent::new(provider.clone(), Arc::new(Clumsy), settings);
                let mut told = String::new();
                let report = if streaming {
                    agent.run_streaming("Hi", |event| write!(told, "{event:?}").unwrap()).await
                } else {
                    agent.run("Hi").await
                };
                write!(told, "{report:?} {agent:?} {provider:?} {endpoint:?}").unwrap();
                write!(told, "{:?}", agent.conversation()).unwrap();
                if let Ended::Failed(error) = &report.ended {
                    told.push_str(&chain(error));
                }
                let outcome = Outcome::new(&report, &*provider, 1);
                told.push_str(&serde_json::to_string(&outcome).unwrap());
                assert!(!told.contains(&KEY[3..]), "{wire:?} {what} {streaming}: {told}");
                let sent = llm.requests();
                let own = sent[0].headers.iter().filter(|(_, value)| value.contains(KEY));
                assert_eq!(own.count(), 1, "{wire:?} {what}");
                assert!(!sent[0].text.contains(KEY) && !sent[0].query.contains(KEY), "{wire:?}");
            }
        }
    }
    let all = heard.all();
    for source in ["hyper", "reqwest", "tool_executed", "the tool fell over"] {
        assert!(all.contains(source), "nothing was heard of {source}");
    }
    let at = all.find(&KEY[3..]).map(|at| &all[at.saturating_sub(300)..]);
    assert_eq!(at, None);
}

/// Tools that say the key in every way there is, and hear it.
struct Gossip;

impl ToolRunner for Gossip {
    fn offered(&self) -> Vec<Offered> {
        let mut tools = vec![("refuse", json!({})), ("lose", json!({})), ("break", json!({}))];
        tools.extend([("misfit", json!({})), ("tell", json!({}))]);
        tools.push(("choose", json!({"to": {"enum": ["up", "down"]}})));
        let offered = |(name, properties)| {
            let schema = json!({"type": "object", "properties": properties});
            Offered { tool: Tool::new(name, "Talks.", schema), hints: Hints::default() }
        };
        tools.into_iter().map(offered).collect()
    }

    fn run<'r>(&'r self, name: &'r str, _: Value) -> Running<'r> {
        let (server, item): (Arc<str>, Box<str>) = ("gossip".into(), name.into());
        let told = json!({"content": [{"type": "text", "text": KEY}], "isError": true});
        Box::pin(async move {
            let error = match name {
                "refuse" => {
                    let error = ErrorObject { code: -32602, message: KEY.to_owned(), data: None };
                    CallError::Server { server, item, error }
                }
                "lose" => {
                    let reason = Lost::NotStarted(KEY.into());
                    CallError::Unavailable { server, reason, may_have_run: false, attempts: 1 }
                }
                "break" => {
                    let source = ProtocolFault::Status { status: 500, text: KEY.into() };
                    CallError::Protocol { server, item, source }
                }
                "misfit" => {
                    let problem = ArgumentProblem { pointer: KEY.into(), message: KEY.into() };
                    CallError::Validation { item, problems: vec![problem] }
                }
                _ => return Ok(Output::new(to_raw_value(&told).unwrap(), true)),
            };
            Err(RunError::Host(error))
        })
    }
}

#[tokio::test]
async fn a_key_that_models_and_tools_say_is_in_no_log_of_a_chat() {
    let heard = listen();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let recording = Recording {
        log_path: Some(path.clone()),
        token_classifications: false,
        performance_metrics: true,
    };
    let settings = chat::Settings { recording, ..chat::Settings::default() };
    let chat = Chat::new(Arc::new(Gossip), settings).unwrap();
    let tools = ["refuse", "lose", "break", "misfit", "tell", "choose"];
    let mut text = format!("It is {KEY}.");
    for tool in tools {
        let call = json!({"tool": tool, "params": {"to": KEY, KEY: KEY}});
        text.push_str(&format!(" {call}\n"));
    }
    let number = KEY.bytes().map(|byte| byte.to_string()).collect::<String>();
    text.push_str(&format!(r#"{{"tool": "tell", "params": {{"to": {number}}}}}"#));
    let answer = futures_util::stream::iter([text]);
    let all = All::of(&mut chat.turn().answer(answer).unwrap()).await;
    assert_eq!(all.executed.len(), tools.len() + 1);
    let log = std::fs::read_to_string(&path).unwrap();
    let stats = LogAnalyzer::from_file(&path).unwrap();
    for tool in tools {
        assert!(stats.tool_execution_stats()[tool].errors > 0, "{tool}: {log}");
    }
    for told in [log, heard.all()] {
        assert!(!told.contains(&KEY[3..]) && !told.contains(&number[..20]), "{told}");
    }
}

/// Proves: P35
#[tokio::test]
async fn each_call_leaves_a_line_with_its_tool_its_end_and_the_hash_of_its_arguments_alone() {
    let heard = listen();
    let arguments = r#"{"password":"open sesame"}"#;
    let model = Scripted::new([
        Ok(Response::calls([("vault.open", arguments), ("vault.open", r#"{"password":"else"}"#)])),
        Ok(Response::text("Done.")),
    ]);
    let settings = Settings { approve: Policy::Never, ..Settings::default() };
    Agent::new(Arc::new(model), Arc::new(Clumsy), settings).run("Read.").await;
    let all = heard.all();
    let digest = Sha256::digest(arguments.as_bytes());
    let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let lines: Vec<_> =
        all.lines().filter(|it| it.contains("refused") && it.contains("vault.open")).collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines.iter().all(|line| line.starts_with(TARGET)), "{lines:#?}");
    let line = lines[0];
    for part in ["audit=\"tool_executed\"", "tool=\"vault.open\"", "outcome=\"refused\""] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(line.contains(&format!("arguments_sha256=\"{hash}\"")), "{line}");
    assert!(!lines[1].contains(&hash), "{lines:#?}");
    assert!(!all.contains("sesame") && !all.contains("password"));
}

#[test]
fn who_is_asked_for_by_name_does_not_show_its_key() {
    let environment = Environment::from_pairs([("OPENAI_API_KEY", KEY)]);
    let wanted = Wanted {
        provider: Named::OpenAi.name().to_owned(),
        key: Some(Secret::new(KEY)),
        ..Wanted::default()
    };
    let base_url = Some(format!("https://user:{KEY}@example.com/v1?key={KEY}"));
    let there = Wanted { base_url, ..wanted.clone() };
    let client = get_llm_client(&there, &environment).unwrap();
    let wrong = Wanted { provider: "none".to_owned(), ..wanted.clone() };
    let error = get_llm_client(&wrong, &environment).unwrap_err();
    let told = format!("{wanted:?} {client:?} {error} {error:?} {:?}", client.endpoint());
    assert!(!told.contains(&KEY[3..]), "{told}");
}
