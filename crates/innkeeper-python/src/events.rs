//! The events of a host.

use std::sync::Arc;

use innkeeper::HostEvent;
use innkeeper::event::{CallRecord, CallReference};
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Mutex, watch};

use crate::failure::Failure;
use crate::json::Tape;
use crate::operation::{Operation, Output};

/// The events of a host from the subscription on.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct EventStream(Arc<Mutex<Subscription>>);

struct Subscription {
    events: Receiver<HostEvent>,
    ended: watch::Receiver<bool>,
}

impl Subscription {
    /// Returns the next event; after a shutdown those that are left, then the end, even while somebody
    /// still has the host.
    async fn next(&mut self) -> Result<HostEvent, RecvError> {
        tokio::select! {
            biased;
            event = self.events.recv() => event,
            _ = self.ended.wait_for(|ended| *ended) => Err(RecvError::Closed),
        }
    }
}

impl EventStream {
    pub(crate) fn new(events: Receiver<HostEvent>, ended: watch::Receiver<bool>) -> Self {
        Self(Arc::new(Mutex::new(Subscription { events, ended })))
    }
}

#[pymethods]
impl EventStream {
    /// Returns the next event, or `None` after the end of the host.
    fn next(&self) -> Operation {
        let events = self.0.clone();
        Operation::new(async move {
            let event = match events.lock().await.next().await {
                Ok(event) => EventRecord::new(&event),
                Err(RecvError::Lagged(count)) => {
                    EventRecord { kind: "lagged", fields: json!({ "count": count }), raw: None }
                }
                Err(RecvError::Closed) => return Ok(Output::None),
            };
            let json =
                to_raw_value(&event).map_err(|error| Failure::Internal(error.to_string()))?;
            Ok(Output::Json(Tape::new(json)))
        })
    }
}

/// An event as a JSON object: `kind`, and the event's own members.
#[derive(Serialize)]
struct EventRecord {
    kind: &'static str,
    #[serde(flatten)]
    fields: Value,
    /// Parameters as the server sent them.
    #[serde(rename = "params", skip_serializing_if = "Option::is_none")]
    raw: Option<Arc<RawValue>>,
}

impl EventRecord {
    fn new(event: &HostEvent) -> Self {
        let raw = if let HostEvent::Notification { params, .. } = event {
            params.clone()
        } else if let HostEvent::Message { params, .. } = event {
            Some(params.clone())
        } else {
            None
        };
        let (kind, fields) = members(event);
        Self { kind, fields, raw }
    }
}

/// Returns the kind of an event with its members.
fn members(event: &HostEvent) -> (&'static str, Value) {
    match event {
        HostEvent::Launching { server, program, attempt } => {
            ("launching", json!({ "server": server, "program": program, "attempt": attempt }))
        }
        HostEvent::Installing { server, package } => {
            ("installing", json!({ "server": server, "package": package }))
        }
        HostEvent::Handshake { server } => ("handshake", json!({ "server": server })),
        HostEvent::LaunchRetry { server, delay, reason } => {
            let delay = delay.as_secs_f64();
            ("launch_retry", json!({ "server": server, "delay": delay, "reason": reason }))
        }
        HostEvent::Restarting { server, attempt, delay } => {
            let delay = delay.as_secs_f64();
            ("restarting", json!({ "server": server, "attempt": attempt, "delay": delay }))
        }
        HostEvent::CallRetry { server, method, item, attempt, delay, reason } => (
            "call_retry",
            json!({
                "server": server, "method": method, "item": item, "attempt": attempt,
                "delay": delay.as_secs_f64(), "reason": reason,
            }),
        ),
        HostEvent::Ready { server, elapsed, tools } => {
            let elapsed = elapsed.as_secs_f64();
            ("ready", json!({ "server": server, "elapsed": elapsed, "tools": tools }))
        }
        HostEvent::Unavailable { server, reason } => {
            ("unavailable", json!({ "server": server, "reason": reason }))
        }
        HostEvent::Stopped { server } => ("stopped", json!({ "server": server })),
        HostEvent::Reinitialized { server } => ("reinitialized", json!({ "server": server })),
        HostEvent::CatalogChanged { server } => ("catalog_changed", json!({ "server": server })),
        HostEvent::ResourceUpdated { server, uri } => {
            ("resource_updated", json!({ "server": server, "uri": uri }))
        }
        HostEvent::Message { server, level, logger, .. } => {
            ("message", json!({ "server": server, "level": level, "logger": logger }))
        }
        HostEvent::Notification { server, method, call, .. } => {
            let call = match call {
                CallReference::Call { id, method, item } => {
                    json!({ "id": id, "method": method, "item": item })
                }
                CallReference::Unknown => Value::Null,
            };
            ("notification", json!({ "server": server, "method": method, "call": call }))
        }
        HostEvent::Reloaded { added, removed, changed } => {
            ("reloaded", json!({ "added": added, "removed": removed, "changed": changed }))
        }
        HostEvent::ReloadFailed { diagnostics } => {
            ("reload_failed", json!({ "problems": diagnostics }))
        }
        HostEvent::NotTrusted { server } => ("not_trusted", json!({ "server": server })),
        HostEvent::CallFinished(record) => ("call_finished", call_members(record)),
        HostEvent::Quarantined { server, subject, reason } => {
            ("quarantined", json!({ "server": server, "subject": subject, "reason": reason }))
        }
        HostEvent::ListMissing { server, list, reason } => {
            ("list_missing", json!({ "server": server, "list": list, "reason": reason }))
        }
        HostEvent::PinMismatch { server, subject, reason, withheld } => (
            "pin_mismatch",
            json!({ "server": server, "subject": subject, "reason": reason, "withheld": withheld }),
        ),
        HostEvent::SecurityWarning { server, tool, reason } => {
            ("security_warning", json!({ "server": server, "tool": tool, "reason": reason }))
        }
        HostEvent::GuardFinding { server, tool, item, finding, withheld } => (
            "guard_finding",
            json!({
                "server": server, "tool": tool, "item": item, "reason": finding.to_string(),
                "withheld": withheld,
            }),
        ),
        HostEvent::LimitNotApplied { server, key, reason } => {
            ("limit_not_applied", json!({ "server": server, "key": key, "reason": reason }))
        }
    }
}

fn call_members(record: &CallRecord) -> Value {
    json!({
        "server": record.server,
        "method": record.method,
        "item": record.item,
        "id": record.id,
        "latency": record.latency.as_secs_f64(),
        "outcome": record.outcome.as_str(),
    })
}
