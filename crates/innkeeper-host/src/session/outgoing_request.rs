//! A request to a server, with its deadlines.

use std::borrow::Cow;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{CallContext, Progress};

/// An outgoing request.
#[derive(Debug)]
pub(crate) struct OutgoingRequest<'a, P> {
    pub(crate) id: u64,
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: &'a P,
    /// Tool, prompt or URI, for transports that send it as a header.
    pub(crate) name: Option<&'a str>,
    /// Arguments that a transport must send as headers.
    pub(crate) headers: &'a [(String, String)],
    pub(crate) deadline: Instant,
    /// How far progress or a running callback may extend the deadline.
    pub(crate) deadline_extension: Option<DeadlineExtension>,
    pub(crate) progress: Option<mpsc::Sender<Progress>>,
    /// Whether the server is notified when the caller is dropped (the specification forbids this
    /// for `initialize`).
    pub(crate) cancellable: bool,
    /// Whether the request stays open as long as the connection and does not count as in flight.
    pub(crate) background: bool,
    /// The call that the request belongs to; `None` for requests of the host itself.
    pub(crate) call: Option<CallContext<'a>>,
    /// The task whose result the request returns, for messages of the server about the task.
    pub(crate) task_id: Option<&'a str>,
}

impl<'a, P> OutgoingRequest<'a, P> {
    /// Creates a cancellable request with default options.
    pub(crate) fn new(
        id: u64,
        method: impl Into<Cow<'static, str>>,
        params: &'a P,
        deadline: Instant,
    ) -> Self {
        Self {
            id,
            method: method.into(),
            params,
            name: None,
            headers: &[],
            deadline,
            deadline_extension: None,
            progress: None,
            cancellable: true,
            background: false,
            call: None,
            task_id: None,
        }
    }
}

/// A deadline that moves while the server shows activity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeadlineExtension {
    /// Maximum time without activity.
    pub(crate) idle_timeout: Duration,
    /// Absolute deadline.
    pub(crate) deadline: Instant,
}
