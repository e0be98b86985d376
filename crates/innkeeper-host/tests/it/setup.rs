//! What the tests here start from: a scene with fixture servers, their journal, and the host's log.

use std::error::Error;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use innkeeper_host::{
    Config, Environment, Event, Host, HostBuilder, StartError, Supervisor, ToolResult,
};
use innkeeper_testkit::{Fixture, Journal, Nonce, fx, mcp_json, until_gone, zombie_children};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// How long a loaded machine may take for what usually takes milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How long a process may be seen after the host is done with it: until its parent has reaped it.
const REAPING: Duration = Duration::from_secs(1);

/// A directory, a journal and a mark on every process, of one test.
pub(crate) struct Scene {
    directory: TempDir,
    nonce: Nonce,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), nonce: Nonce::new() }
    }

    /// A file of this test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// A fixture server that writes to this scene's journal and bears its mark.
    pub(crate) fn fx(&self, name: &str) -> Fixture {
        fx(name).journal(&self.journal_path()).nonce(&self.nonce)
    }

    /// The configuration of these servers, read against this process's environment.
    pub(crate) fn config(&self, servers: impl IntoIterator<Item = Fixture>) -> Config {
        self.config_of(&mcp_json(servers))
    }

    /// The configuration of these servers with keys of the host.
    pub(crate) fn config_with(
        &self,
        host: &Value,
        servers: impl IntoIterator<Item = Fixture>,
    ) -> Config {
        let mut file = mcp_json(servers);
        file["host"] = host.clone();
        self.config_of(&file)
    }

    /// The configuration that stands in this file.
    pub(crate) fn config_of(&self, file: &Value) -> Config {
        let environment = Environment::of_process();
        Config::from_value(file, "mcp.json", self.directory.path(), &environment).unwrap()
    }

    /// Starts these servers, each beside a shim.
    pub(crate) async fn start(
        &self,
        servers: impl IntoIterator<Item = Fixture>,
    ) -> Result<Host, StartError> {
        builder(self.config(servers)).start().await
    }

    /// What the servers have recorded so far.
    pub(crate) fn journal(&self) -> Journal {
        Journal::read(&self.journal_path())
    }

    /// Waits until the journal is as wanted.
    pub(crate) async fn journal_until(&self, wanted: impl Fn(&Journal) -> bool) -> Journal {
        Journal::until(&self.journal_path(), PATIENCE, wanted).await
    }

    /// Fails unless every process of the test is gone by now, and none left to be reaped.
    pub(crate) async fn assert_gone(&self) {
        if let Err(left) = until_gone(&self.nonce, REAPING).await {
            panic!("still there: {left:#?}");
        }
        // Where tests share a process, another one's child may be seen in the moment of its end.
        let reaped = async {
            while !zombie_children().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let reaped = tokio::time::timeout(REAPING, reaped).await;
        assert!(reaped.is_ok(), "not reaped: {:?}", zombie_children());
    }

    pub(crate) fn journal_path(&self) -> PathBuf {
        self.path("journal")
    }
}

/// A host of this configuration with a shim beside each server.
pub(crate) fn builder(config: Config) -> HostBuilder {
    Host::builder(config).supervisor(Supervisor::executable(shim()))
}

/// The supervisor that was built with these tests.
pub(crate) fn shim() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_innkeeper-shim"))
}

/// The text of a tool's result.
pub(crate) fn text(result: &ToolResult) -> String {
    let result: Value = serde_json::from_str(result.raw().get()).unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// Every event told so far, in order.
pub(crate) fn told(events: &mut Receiver<Event>) -> Vec<Event> {
    let mut told = Vec::new();
    loop {
        match events.try_recv() {
            Ok(event) => told.push(event),
            Err(TryRecvError::Empty | TryRecvError::Closed) => return told,
            Err(TryRecvError::Lagged(lost)) => panic!("{lost} events were lost"),
        }
    }
}

/// Waits for an event.
pub(crate) async fn until_told(
    events: &mut Receiver<Event>,
    wanted: impl Fn(&Event) -> bool,
) -> Event {
    let waited = tokio::time::timeout(PATIENCE, async {
        loop {
            let event = events.recv().await.unwrap();
            if wanted(&event) {
                return event;
            }
        }
    });
    waited.await.expect("the event is told")
}

/// The error and all its causes, as a person would read them.
pub(crate) fn chain(error: &dyn Error) -> Vec<String> {
    let mut messages = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        messages.push(error.to_string());
        cause = error.source();
    }
    messages
}

static LISTENER: Once = Once::new();

/// What is logged on this thread while it lives, each line as a JSON object with `level`,
/// `message` and the fields; an error is a list of its messages, from the outermost cause in.
pub(crate) struct Log {
    lines: Lines,
    _scope: DefaultGuard,
}

impl Log {
    /// Begins to capture; meant for tests on a runtime of one thread.
    pub(crate) fn capture() -> Self {
        // Somebody else who always listens: whether a place logs is remembered for all threads, and
        // tests that begin and end beside this one would make it forget.
        LISTENER.call_once(|| {
            tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
        });
        let lines = Lines::default();
        let subscriber = tracing_subscriber::registry().with(lines.clone());
        Self { lines, _scope: tracing::subscriber::set_default(subscriber) }
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.lines.0.lock().unwrap().clone()
    }

    /// The lines with this message, in order.
    pub(crate) fn of(&self, message: &str) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line["message"] == message).collect()
    }

    /// The lines about security, in order.
    pub(crate) fn audited(&self) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line["security"] == true).collect()
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Value>>>);

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        let mut line = Line(Map::new());
        line.put("level", json!(event.metadata().level().as_str()));
        event.record(&mut line);
        self.0.lock().unwrap().push(Value::Object(line.0));
    }
}

struct Line(Map<String, Value>);

impl Line {
    fn put(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field.name(), json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), json!(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put(field.name(), json!(chain(value)));
    }
}
