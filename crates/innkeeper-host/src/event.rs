//! What a host tells an application as it happens.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::broadcast;

use crate::config::Problem;
use crate::error::CallKind;
use crate::guard::Finding;

/// How many events a slow listener may lag behind before it loses the oldest; a start of 100
/// servers with several retries fits.
const CAPACITY: usize = 1024;

/// One thing that happened; `server` is the name in the configuration.
#[derive(Clone, Debug)]
pub enum Event {
    /// A server's process is being launched.
    Launching {
        /// The server.
        server: Arc<str>,
        /// Which try this is, from 1.
        attempt: u32,
    },
    /// The launcher (`npx`, `uvx`, …) is still fetching or installing the server.
    Installing {
        /// The server.
        server: Arc<str>,
    },
    /// The process runs and the handshake is under way.
    Handshake {
        /// The server.
        server: Arc<str>,
    },
    /// A launch failed and will be tried again.
    Retrying {
        /// The server.
        server: Arc<str>,
        /// The pause before the next try.
        delay: Duration,
        /// What went wrong.
        reason: String,
    },
    /// A server that was lost will be started again (`restart`).
    Restarting {
        /// The server.
        server: Arc<str>,
        /// Which restart this is since it was last ready for a minute, from 1.
        attempt: u32,
        /// The pause before it.
        delay: Duration,
    },
    /// A request did not reach its server, or may run twice, and will be sent again.
    CallRetried {
        /// The server.
        server: Arc<str>,
        /// The method, `tools/call` for example.
        method: &'static str,
        /// The tool, prompt or URI.
        item: Box<str>,
        /// Which attempt comes next, from 2.
        attempt: u32,
        /// The pause before it.
        delay: Duration,
        /// What became of the one before.
        reason: String,
    },
    /// The server is ready.
    Ready {
        /// The server.
        server: Arc<str>,
        /// Since the first launch.
        took: Duration,
        /// How many tools it offers.
        tools: usize,
    },
    /// The server could not be started, crashed, or cannot be reached any more.
    Unavailable {
        /// The server.
        server: Arc<str>,
        /// What went wrong.
        reason: String,
    },
    /// The server was stopped by the host.
    Stopped {
        /// The server.
        server: Arc<str>,
    },
    /// What the server offers has changed and the catalog was replaced.
    CatalogChanged {
        /// The server.
        server: Arc<str>,
    },
    /// A resource has changed; copies of it are forgotten.
    ResourceUpdated {
        /// The server.
        server: Arc<str>,
        /// The resource.
        uri: String,
    },
    /// The server has said something for a log.
    Message {
        /// The server.
        server: Arc<str>,
        /// How bad it is, in the words of syslog, as the server sent it.
        level: String,
        /// Which part of the server says it.
        logger: Option<String>,
        /// What it says: any JSON, to be escaped wherever it is shown.
        data: Option<Box<RawValue>>,
    },
    /// Something a server offered was left out of the catalog.
    Quarantined {
        /// The server.
        server: Arc<str>,
        /// What was left out.
        what: String,
        /// Why.
        reason: String,
    },
    /// Something of a server is not as it was pinned.
    PinBroken {
        /// The server.
        server: Arc<str>,
        /// What it is: a tool, `instructions`, `serverInfo`, `launch` or the `server`.
        what: String,
        /// Whether it changed or is new.
        reason: String,
        /// Whether it is kept from applications and models.
        refused: bool,
    },
    /// Something looks as if it were made to deceive, and is offered all the same.
    Doubtful {
        /// The server.
        server: Arc<str>,
        /// The tool; `None` for the server's instructions.
        tool: Option<Box<str>>,
        /// What about it; may quote a server.
        reason: String,
    },
    /// The guard has found what looks like an attack (`guard`).
    Suspicious {
        /// The server.
        server: Arc<str>,
        /// The tool, if it is of one.
        tool: Option<Box<str>>,
        /// The prompt by its name at the server, the resource or template by its URI, if it is of one.
        /// With neither it is in the server's instructions.
        item: Option<Box<str>>,
        /// What was found, and where.
        finding: Finding,
        /// Whether it is held back.
        refused: bool,
    },
    /// A limit or a part of the sandbox has no effect here; the server is started all the same.
    LimitNotApplied {
        /// The server.
        server: Arc<str>,
        /// The key, `limits.memory` for example.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// Another configuration was taken up.
    Reloaded {
        /// Servers that are new.
        added: Vec<Arc<str>>,
        /// Servers that are no longer there.
        removed: Vec<Arc<str>>,
        /// Servers whose settings are not those they run with, or were not until now.
        changed: Vec<Arc<str>>,
    },
    /// The configuration cannot be used; everything is as it was.
    ReloadFailed {
        /// All that is wrong with it.
        problems: Vec<Problem>,
    },
    /// A watched file has a server that nobody has decided on; it is not started.
    NotTrusted {
        /// The server.
        server: Arc<str>,
    },
    /// A call has ended.
    Called(CallRecord),
}

/// What is kept of one call: the same record goes to metrics, log and listeners.
#[derive(Clone, Debug)]
pub struct CallRecord {
    /// The server that was asked.
    pub server: Arc<str>,
    /// The method, `tools/call` for example.
    pub method: &'static str,
    /// The tool, prompt or URI.
    pub item: Box<str>,
    /// The id of the request on the wire, the last one if it was sent again; 0 if nothing was sent.
    pub id: u64,
    /// From the moment the call was allowed to be sent until its outcome, with all attempts and the
    /// pauses between them.
    pub latency: Duration,
    /// How it ended.
    pub outcome: CallOutcome,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The server gave a result.
    Ok,
    /// The tool answered with `isError`: for the model to read, not a failure of the host.
    ToolError,
    /// The call failed.
    Failed(CallKind),
    /// The caller went away before the answer.
    Cancelled,
}

impl CallOutcome {
    /// The word used in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Failed(kind) => kind.as_str(),
            Self::Cancelled => "cancelled",
        }
    }
}

/// Where events are published; costs one atomic read while nobody listens.
#[derive(Clone, Debug)]
pub(crate) struct Events(broadcast::Sender<Event>);

impl Events {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }

    pub(crate) fn wanted(&self) -> bool {
        self.0.receiver_count() > 0
    }

    pub(crate) fn publish(&self, event: Event) {
        if self.wanted() {
            // Every listener may have gone in between: nobody is left to tell.
            drop(self.0.send(event));
        }
    }
}
