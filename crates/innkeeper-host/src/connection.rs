//! The connection to a ready server that calls use.

pub(crate) mod call_permits;
mod call_recorder;
mod exchange;
mod findings;
mod freshness;
pub(crate) mod handshake;
mod internal_request;
pub(crate) mod list_doubt;
pub(crate) mod list_ttls;
pub(crate) mod listen;
pub(crate) mod listing;
pub(crate) mod log_level;
pub(crate) mod meta;
pub(crate) mod pass_through;
pub(crate) mod ping;
mod request_spec;
mod result_rejection;
pub(crate) mod result_type;
pub(crate) mod round_trips;
pub(crate) mod subscriptions;
mod task_poll;
pub(crate) mod timeout_streak;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use innkeeper_config::RetryPolicy;
use innkeeper_protocol::Revision;
use innkeeper_protocol::view::TasksCapability;
use serde_json::value::RawValue;

use crate::connection::call_permits::CallPermits;
use crate::connection::meta::ClientMeta;
use crate::connection::timeout_streak::TimeoutStreak;
use crate::error::{CallError, Violation};
use crate::event::HostEvent;
use crate::metrics::MetricsRecorder;
use crate::retry::RetryNotice;
use crate::session::{HostContext, RequestError, Session};
use crate::telemetry::ConnectionTelemetry;

pub(crate) use findings::report_findings;
pub(crate) use freshness::Freshness;
pub(crate) use request_spec::{
    Member, RequestMeta, RequestOptions, RequestParams, RequestSpec, TaskUse,
};
pub(crate) use result_rejection::ResultRejection;

/// The connection to one server that accepts requests.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) server: Arc<str>,
    pub(crate) number: ConnectionNumber,
    pub(crate) session: Session,
    pub(crate) negotiated: Negotiated,
    pub(crate) limits: RequestLimits,
    pub(crate) freshness: Freshness,
    pub(crate) instruments: Instruments,
    pub(crate) host: HostContext,
}

/// A number that no other connection of the process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionNumber(pub(crate) u64);

impl ConnectionNumber {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The result of the handshake, as far as requests need it.
#[derive(Debug)]
pub(crate) struct Negotiated {
    pub(crate) revision: Revision,
    /// Task capabilities of the server in its protocol revision.
    pub(crate) tasks: TasksCapability,
    /// Capabilities of the server, as the server declares them.
    pub(crate) capabilities: Box<RawValue>,
    /// Whether the server declares `logging`.
    pub(crate) declares_logging: bool,
    /// `_meta` of every request of the modern era.
    pub(crate) client_meta: ClientMeta,
}

/// The limits of the requests to one server, from its configuration.
#[derive(Debug)]
pub(crate) struct RequestLimits {
    pub(crate) permits: CallPermits,
    /// Maximum total duration of one call, regardless of progress.
    pub(crate) max_total_timeout: Duration,
    pub(crate) retry: RetryPolicy,
}

/// Counts and reports the requests to one server.
#[derive(Debug)]
pub(crate) struct Instruments {
    pub(crate) metrics: Arc<MetricsRecorder>,
    pub(crate) timeout_streak: TimeoutStreak,
    /// Emits spans and metrics; `None` disables telemetry without cost.
    pub(crate) telemetry: Option<ConnectionTelemetry>,
}

impl Connection {
    pub(super) fn report_retry(
        &self,
        method: Cow<'static, str>,
        item: &str,
        notice: &RetryNotice<'_>,
    ) {
        let server = &*self.server;
        let reason = notice.reason.without_server_text().to_string();
        let attempt = notice.attempt;
        let delay_s = notice.delay.as_secs_f64();
        tracing::warn!(
            server,
            method = &*method,
            item,
            attempt,
            delay_s,
            reason,
            "request retried"
        );
        self.host.events.publish(HostEvent::CallRetry {
            server: self.server.clone(),
            method,
            item: item.into(),
            attempt,
            delay: notice.delay,
            reason,
        });
    }

    /// Adds the server and the item to an error of the session.
    pub(crate) fn call_error(&self, error: RequestError, item: &str, after: Duration) -> CallError {
        call_error(&self.server, error, item, after)
    }
}

/// Adds the server and the item to an error of a session.
pub(crate) fn call_error(
    server: &Arc<str>,
    failure: RequestError,
    item: &str,
    timeout: Duration,
) -> CallError {
    let server = server.clone();
    match failure {
        RequestError::ErrorResponse(error) => {
            CallError::Server { server, item: item.into(), error }
        }
        RequestError::Protocol(source) => CallError::Protocol { server, item: item.into(), source },
        RequestError::TooLarge { bytes, limit } => {
            let message = format!("the request has {bytes} bytes, more than the limit of {limit}");
            CallError::Validation {
                item: item.into(),
                problems: vec![Violation::of_whole_value(message)],
            }
        }
        RequestError::Unavailable { reason, sent } => {
            CallError::Unavailable { server, reason, may_have_run: sent, attempts: 1 }
        }
        RequestError::Timeout => {
            CallError::Timeout { server, item: item.into(), timeout, is_total: false }
        }
    }
}
