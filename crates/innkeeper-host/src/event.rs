//! Events that a host publishes for applications.

mod call_reference;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use innkeeper_config::Diagnostic;
use serde_json::value::RawValue;
use tokio::sync::broadcast;

use crate::error::CallErrorKind;
use crate::guard::Finding;

pub use call_reference::CallReference;

/// The `tracing` target of log lines whose fact the application also receives: as the error of a
/// call or of a start, as the status of a server, or as [`HostEvent::LaunchRetry`],
/// [`HostEvent::ListMissing`] or [`HostEvent::Unavailable`].
///
/// An application that reports these itself filters the target out of its log.
pub const REPORTED_TARGET: &str = "innkeeper::reported";

/// Number of events that a slow receiver may lag before it loses the oldest event. A start of 100
/// servers with several retries fits.
const EVENT_CAPACITY: usize = 1024;

/// An event of a host. `server` is the name in the configuration.
#[derive(Clone, Debug)]
pub enum HostEvent {
    /// The host launches the process of a server, or connects to a server.
    Launching {
        /// The name of the server.
        server: Arc<str>,
        /// The name of the program, for example `npx`; `None` for a server without a process.
        program: Option<Box<str>>,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// The package runner (`npx`, `uvx`, …) downloads or installs the server. The host publishes
    /// this event only if it observes the installation: the runner reports one on stderr, or, on
    /// Linux, writes a package to disk.
    Installing {
        /// The name of the server.
        server: Arc<str>,
        /// The package, as the configuration names it; `None` if no argument of the runner names
        /// one.
        package: Option<Box<str>>,
    },
    /// The process runs and the handshake started.
    Handshake {
        /// The name of the server.
        server: Arc<str>,
    },
    /// A launch failed and the host will retry.
    LaunchRetry {
        /// The name of the server.
        server: Arc<str>,
        /// The delay before the next attempt.
        delay: Duration,
        /// The reason of the failure.
        reason: String,
    },
    /// The host will restart an unavailable server (`restart`, or
    /// [`HostBuilder::revive_servers`](crate::HostBuilder::revive_servers)).
    Restarting {
        /// The name of the server.
        server: Arc<str>,
        /// The number of the restart since the server was last ready for a minute, from 1.
        attempt: u32,
        /// The delay before the restart.
        delay: Duration,
    },
    /// The host will retry a request that did not reach the server or may run twice.
    CallRetry {
        /// The name of the server.
        server: Arc<str>,
        /// The method, for example `tools/call`.
        method: Cow<'static, str>,
        /// The tool, the prompt or the URI.
        item: Box<str>,
        /// The number of the next attempt, from 2.
        attempt: u32,
        /// The delay before the next attempt.
        delay: Duration,
        /// The reason why the previous attempt failed.
        reason: String,
    },
    /// The server is ready: after its start, or because it responds again after a silence.
    Ready {
        /// The name of the server.
        server: Arc<str>,
        /// The time since the first launch, or the duration of the silence.
        elapsed: Duration,
        /// The number of tools that the server offers.
        tools: usize,
    },
    /// The server did not start, crashed, or cannot be reached.
    Unavailable {
        /// The name of the server.
        server: Arc<str>,
        /// The reason why the server is unavailable, without text of the server;
        /// [`ServerStatus`](crate::ServerStatus) has that.
        reason: String,
    },
    /// The host stopped the server.
    Stopped {
        /// The name of the server.
        server: Arc<str>,
    },
    /// The server forgot its session, and the host started another one: what the server knew of the
    /// earlier session is gone.
    Reinitialized {
        /// The name of the server.
        server: Arc<str>,
    },
    /// The listing of the server changed, and a new catalog is active.
    CatalogChanged {
        /// The name of the server.
        server: Arc<str>,
    },
    /// A resource changed. The cache no longer contains the resource.
    ResourceUpdated {
        /// The name of the server.
        server: Arc<str>,
        /// The URI of the resource.
        uri: String,
    },
    /// The server sent a log message (`notifications/message`).
    Message {
        /// The name of the server.
        server: Arc<str>,
        /// The syslog severity, as the server sent it.
        level: String,
        /// The logger name, if the server sent one.
        logger: Option<String>,
        /// The payload: any JSON value. Escape the payload before display.
        data: Option<Box<RawValue>>,
        /// `_meta` as the server sent it.
        meta: Option<Arc<RawValue>>,
        /// All parameters as the server sent them.
        params: Arc<RawValue>,
    },
    /// The server sent a notification. The host publishes this event for every notification of at
    /// most 64 KiB, before the event or the [`Progress`](crate::Progress) with the typed content.
    Notification {
        /// The name of the server.
        server: Arc<str>,
        /// The method, for example `notifications/message`, or a custom method. Escape the method
        /// before display.
        method: Arc<str>,
        /// The parameters as the server sent them.
        params: Option<Arc<RawValue>>,
        /// The call that the notification belongs to.
        call: CallReference,
    },
    /// The catalog excludes an unusable item of a server.
    Quarantined {
        /// The name of the server.
        server: Arc<str>,
        /// The excluded item.
        subject: String,
        /// The reason why the item is unusable.
        reason: String,
    },
    /// A list of prompts, resources or templates could not be read when the server started. The
    /// server is ready without the list.
    ListMissing {
        /// The name of the server.
        server: Arc<str>,
        /// The method of the list, for example `resources/list`.
        list: &'static str,
        /// The reason of the failure.
        reason: String,
    },
    /// An item of a server differs from its pin.
    PinMismatch {
        /// The name of the server.
        server: Arc<str>,
        /// The item: a tool, `instructions`, `serverInfo`, `launch` or the `server`.
        subject: String,
        /// The kind of difference: changed or new.
        reason: String,
        /// Whether the item is withheld from applications and models.
        withheld: bool,
    },
    /// An item looks deceptive. The catalog still offers the item.
    SecurityWarning {
        /// The name of the server.
        server: Arc<str>,
        /// The tool; `None` for the server's instructions.
        tool: Option<Box<str>>,
        /// The reason of the warning. May quote the server.
        reason: String,
    },
    /// The guard detected a possible attack (`guard`).
    GuardFinding {
        /// The name of the server.
        server: Arc<str>,
        /// The tool, if the finding is in a tool.
        tool: Option<Box<str>>,
        /// The prompt by the server's own name, or the resource or template by its URI. Without a
        /// tool and an item, the finding is in the server's instructions.
        item: Option<Box<str>>,
        /// The finding, with its location.
        finding: Finding,
        /// Whether the item is withheld.
        withheld: bool,
    },
    /// A resource limit or a part of the sandbox has no effect on this system. The server starts
    /// anyway.
    LimitNotApplied {
        /// The name of the server.
        server: Arc<str>,
        /// The configuration key, for example `limits.memory`.
        key: &'static str,
        /// The reason why the limit has no effect.
        reason: String,
    },
    /// A new configuration was applied.
    Reloaded {
        /// The servers that were added.
        added: Vec<Arc<str>>,
        /// The servers that were removed.
        removed: Vec<Arc<str>>,
        /// The servers whose configuration differs from the configuration they run with, or
        /// differed until this reload.
        changed: Vec<Arc<str>>,
    },
    /// The new configuration is invalid. The previous configuration stays active.
    ReloadFailed {
        /// All problems of the configuration.
        diagnostics: Vec<Diagnostic>,
    },
    /// A watched file contains a server without a trust decision. The host does not start the
    /// server.
    NotTrusted {
        /// The name of the server.
        server: Arc<str>,
    },
    /// A call ended.
    CallFinished(CallRecord),
}

/// The record of one call. The metrics, the log and the event receivers get the same record.
#[derive(Clone, Debug)]
pub struct CallRecord {
    /// The name of the server.
    pub server: Arc<str>,
    /// The method, for example `tools/call`.
    pub method: Cow<'static, str>,
    /// The tool, the prompt or the URI.
    pub item: Box<str>,
    /// The JSON-RPC id of the request, of the last attempt after a retry; 0 if nothing was sent.
    pub id: u64,
    /// The time from the permission to send until the outcome, with all attempts and delays.
    pub latency: Duration,
    /// The outcome of the call.
    pub outcome: CallOutcome,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The server returned a result.
    Ok,
    /// The tool returned `isError`. The result is input for the model, not a failure of the host.
    ToolError,
    /// The call failed.
    Failed(CallErrorKind),
    /// The caller dropped the future before the response.
    Cancelled,
}

impl CallOutcome {
    /// Returns the name of the outcome in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Failed(kind) => kind.as_str(),
            Self::Cancelled => "cancelled",
        }
    }
}

/// The sender of events. Before the first subscription, publishing costs one atomic read.
#[derive(Clone, Debug)]
pub(crate) struct EventPublisher {
    sender: broadcast::Sender<HostEvent>,
    /// Whether the application has ever subscribed; the count of receivers is behind a lock.
    has_subscribed: Arc<AtomicBool>,
}

impl Default for EventPublisher {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(EVENT_CAPACITY), has_subscribed: Arc::default() }
    }
}

impl EventPublisher {
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<HostEvent> {
        let receiver = self.sender.subscribe();
        self.has_subscribed.store(true, Ordering::Release);
        receiver
    }

    pub(crate) fn has_subscribers(&self) -> bool {
        self.has_subscribed.load(Ordering::Acquire) && self.sender.receiver_count() > 0
    }

    pub(crate) fn publish(&self, event: HostEvent) {
        if self.has_subscribers() {
            // The last receiver may have been dropped since the check.
            let _ = self.sender.send(event);
        }
    }
}
