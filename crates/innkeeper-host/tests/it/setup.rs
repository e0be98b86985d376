//! Test environment: fixture servers, their journal, and the captured log.

use std::error::Error;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use innkeeper_host::{
    Config, Environment, Host, HostBuilder, HostEvent, StartError, Supervisor, ToolResult,
};
use innkeeper_testkit::{
    Fixture, Journal, ProcessTag, built_program, fixture, mcp_json, wait_gone_async,
    zombie_children,
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Maximum time on a loaded machine for operations that usually take milliseconds.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum time between the end of a process and its removal by the parent process.
const REAP_TIMEOUT: Duration = Duration::from_secs(1);

/// The directory, the journal and the process tag of one test.
pub(crate) struct TestEnv {
    directory: TempDir,
    process_tag: ProcessTag,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), process_tag: ProcessTag::new() }
    }

    /// Returns the path of a file in the test directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn process_tag(&self) -> &ProcessTag {
        &self.process_tag
    }

    /// A fixture server with the journal and the process tag of this test.
    pub(crate) fn fixture(&self, name: &str) -> Fixture {
        fixture(name).journal(&self.journal_path()).process_tag(&self.process_tag)
    }

    /// The configuration of these servers, read with this process's environment.
    pub(crate) fn config(&self, servers: impl IntoIterator<Item = Fixture>) -> Config {
        self.config_from(&mcp_json(servers))
    }

    /// The configuration of these servers with a `host` section.
    pub(crate) fn config_with(
        &self,
        host: &Value,
        servers: impl IntoIterator<Item = Fixture>,
    ) -> Config {
        let mut file = mcp_json(servers);
        file["host"] = host.clone();
        self.config_from(&file)
    }

    /// The configuration in a file with this content.
    pub(crate) fn config_from(&self, file: &Value) -> Config {
        let environment = Environment::from_process();
        Config::from_value(file, "mcp.json", self.directory.path(), &environment).unwrap()
    }

    /// Starts these servers, each with a shim.
    pub(crate) async fn start(
        &self,
        servers: impl IntoIterator<Item = Fixture>,
    ) -> Result<Host, StartError> {
        builder(self.config(servers)).start().await
    }

    /// Reads the current journal of the servers.
    pub(crate) fn journal(&self) -> Journal {
        Journal::read(&self.journal_path())
    }

    /// Waits until the journal matches the predicate.
    pub(crate) async fn wait_for_journal(&self, matches: impl Fn(&Journal) -> bool) -> Journal {
        Journal::wait_for(&self.journal_path(), TEST_TIMEOUT, matches).await
    }

    /// Panics unless every process of the test has ended and was reaped.
    pub(crate) async fn assert_gone(&self) {
        if let Err(remaining) = wait_gone_async(&self.process_tag, REAP_TIMEOUT).await {
            panic!("still there: {remaining:#?}");
        }
        // If tests share a process, a child of another test may briefly be a zombie.
        let reaped = async {
            while !zombie_children().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let reaped = tokio::time::timeout(REAP_TIMEOUT, reaped).await;
        assert!(reaped.is_ok(), "not reaped: {:?}", zombie_children());
    }

    pub(crate) fn journal_path(&self) -> PathBuf {
        self.path("journal")
    }
}

impl Drop for TestEnv {
    /// Checks all messages that the servers received against the schema of the specification.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.journal();
        }
    }
}

/// A host builder for this configuration with a shim for each server.
pub(crate) fn builder(config: Config) -> HostBuilder {
    Host::builder(config).supervisor(Supervisor::executable(shim_path()))
}

/// The path of the shim executable from this build.
pub(crate) fn shim_path() -> PathBuf {
    built_program("innkeeper-shim")
}

/// Returns the text of a tool result.
pub(crate) fn result_text(result: &ToolResult) -> String {
    let result: Value = serde_json::from_str(result.raw().get()).unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// Returns all pending events, in order.
pub(crate) fn drain_events(events: &mut Receiver<HostEvent>) -> Vec<HostEvent> {
    let mut drained = Vec::new();
    loop {
        match events.try_recv() {
            Ok(event) => drained.push(event),
            Err(TryRecvError::Empty | TryRecvError::Closed) => return drained,
            Err(TryRecvError::Lagged(count)) => panic!("{count} events were lost"),
        }
    }
}

/// Waits for an event that matches the predicate.
pub(crate) async fn wait_for_event(
    events: &mut Receiver<HostEvent>,
    matches: impl Fn(&HostEvent) -> bool,
) -> HostEvent {
    let found = tokio::time::timeout(TEST_TIMEOUT, async {
        loop {
            let event = events.recv().await.unwrap();
            if matches(&event) {
                return event;
            }
        }
    });
    found.await.expect("the event is told")
}

/// Returns the messages of the error and all its causes.
pub(crate) fn error_chain(error: &dyn Error) -> Vec<String> {
    let mut messages = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        messages.push(error.to_string());
        cause = error.source();
    }
    messages
}

static DEFAULT_SUBSCRIBER: Once = Once::new();

/// Captures the log of the current thread until dropped. Each line is a JSON object with `level`,
/// `message` and the fields; an error is a list of its messages, from the outermost cause inward.
pub(crate) struct LogCapture {
    lines: LogLines,
    _scope: DefaultGuard,
}

impl LogCapture {
    /// Starts the capture; requires a single-threaded runtime.
    pub(crate) fn capture() -> Self {
        // `tracing` caches for all threads whether a call site is enabled. A permanent global
        // subscriber keeps the call sites enabled while tests on other threads start and end.
        DEFAULT_SUBSCRIBER.call_once(|| {
            tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
        });
        let lines = LogLines::default();
        let subscriber = tracing_subscriber::registry().with(lines.clone());
        Self { lines, _scope: tracing::subscriber::set_default(subscriber) }
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.lines.0.lock().unwrap().clone()
    }

    /// Returns the lines with this message, in order.
    pub(crate) fn with_message(&self, message: &str) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line["message"] == message).collect()
    }

    /// Returns the audit lines, in order.
    pub(crate) fn security_lines(&self) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line["security"] == true).collect()
    }
}

#[derive(Clone, Default)]
struct LogLines(Arc<Mutex<Vec<Value>>>);

impl<S: tracing::Subscriber> Layer<S> for LogLines {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        let mut line = LogLineVisitor(Map::new());
        line.insert("level", json!(event.metadata().level().as_str()));
        event.record(&mut line);
        self.0.lock().unwrap().push(Value::Object(line.0));
    }
}

struct LogLineVisitor(Map<String, Value>);

impl LogLineVisitor {
    fn insert(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }
}

impl Visit for LogLineVisitor {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.insert(field.name(), json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field.name(), json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field.name(), json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field.name(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field.name(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field.name(), json!(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.insert(field.name(), json!(error_chain(value)));
    }
}
