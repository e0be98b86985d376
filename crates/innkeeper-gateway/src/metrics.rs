//! Counts of the gateway, in the Prometheus text format 0.0.4.
//!
//! A count is one atomic operation; only the reader of the metrics takes locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use innkeeper_protocol::method;

use crate::error::{ErrorKind, RpcError};

/// The methods with a count of their own.
const METHODS: [&str; 18] = [
    method::INITIALIZE,
    method::SERVER_DISCOVER,
    method::PING,
    method::TOOLS_LIST,
    method::TOOLS_CALL,
    method::PROMPTS_LIST,
    method::PROMPTS_GET,
    method::RESOURCES_LIST,
    method::RESOURCES_TEMPLATES_LIST,
    method::RESOURCES_READ,
    method::RESOURCES_SUBSCRIBE,
    method::RESOURCES_UNSUBSCRIBE,
    method::COMPLETION_COMPLETE,
    method::SUBSCRIPTIONS_LISTEN,
    method::TASKS_GET,
    method::TASKS_RESULT,
    method::TASKS_UPDATE,
    method::TASKS_CANCEL,
];

/// The label of all other methods: the names are text of clients.
const OTHER_METHOD: &str = "other";

/// Returns the name of a method with a count of its own.
pub(crate) fn known_method(method: &str) -> Option<&'static str> {
    METHODS.into_iter().find(|known| *known == method)
}

const METHOD_COUNT: usize = METHODS.len() + 1;

/// The outcomes of a request; the last is that of a request without a response.
const OUTCOMES: [&str; 13] = [
    "ok",
    "invalid",
    "unknown_item",
    "rate",
    "server",
    "unavailable",
    "process_limit",
    "timeout",
    "protocol",
    "withheld",
    "not_approved",
    "internal",
    "cancelled",
];

/// How a client reaches the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientTransport {
    /// A connection with lines.
    Connection,
    /// Streamable HTTP.
    Http,
    /// Tools over plain HTTP.
    Rest,
    /// JSON-RPC of the connection service.
    ConnectionService,
    /// The console.
    Console,
}

impl ClientTransport {
    pub(crate) fn as_str(self) -> &'static str {
        TRANSPORTS.get(self as usize).copied().unwrap_or_default()
    }
}

const TRANSPORTS: [&str; 5] = ["connection", "http", "rest", "connection_service", "console"];

/// Why the gateway used no part of an HTTP request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RejectionReason {
    Origin,
    Authentication,
    Rate,
    Sessions,
    Connections,
}

const REJECTION_REASONS: [&str; 5] =
    ["origin", "authentication", "rate", "sessions", "connections"];

/// Why the gateway ended a connection of HTTP.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClosedConnection {
    /// No request arrived in time, or only a part of its head.
    Idle,
    /// The client did not read a response.
    Unread,
    /// The remote address had the maximum of connections.
    AddressLimit,
}

const FINISHED_BYTES_HELP: &str =
    "Memory in bytes of finished event streams that clients can resume.";

const CLOSE_REASONS: [&str; 3] = ["idle", "unread", "address_limit"];

#[derive(Debug)]
pub(crate) struct GatewayMetrics {
    /// By transport, method and outcome.
    requests: Box<[AtomicU64]>,
    rejections: [AtomicU64; REJECTION_REASONS.len()],
    closed_connections: [AtomicU64; CLOSE_REASONS.len()],
    requests_in_flight: AtomicUsize,
    open_connections: Arc<AtomicUsize>,
    open_streams: Arc<AtomicUsize>,
    forwarded: [AtomicU64; FORWARDED_OUTCOMES.len()],
    taken_over: AtomicU64,
}

/// What became of a request that was passed on to another replica.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ForwardedOutcome {
    /// The other replica responded.
    Response,
    /// The other replica did not receive the request, or does not own its key.
    NotReceived,
    /// The other replica ended, and may have received the request.
    Lost,
}

const FORWARDED_OUTCOMES: [&str; 3] = ["response", "not_received", "lost"];

/// The numbers that other parts of the gateway have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatewayGauges {
    pub(crate) sessions: usize,
    pub(crate) parked_calls: usize,
    /// `None` without questions, and if their store does not respond.
    pub(crate) open_questions: Option<usize>,
    pub(crate) finished_stream_bytes: usize,
    /// Whether this replica has a lease; `None` without replicas.
    pub(crate) has_lease: Option<bool>,
}

impl GatewayMetrics {
    pub(crate) fn new() -> Self {
        let count = TRANSPORTS.len() * METHOD_COUNT * OUTCOMES.len();
        Self {
            requests: (0..count).map(|_| AtomicU64::new(0)).collect(),
            rejections: Default::default(),
            closed_connections: Default::default(),
            requests_in_flight: AtomicUsize::new(0),
            open_connections: Arc::default(),
            open_streams: Arc::default(),
            forwarded: Default::default(),
            taken_over: AtomicU64::new(0),
        }
    }

    /// Starts a request, which counts as cancelled if the result is dropped.
    pub(crate) fn start_request(
        &self,
        transport: ClientTransport,
        method: &str,
    ) -> CountedRequest<'_> {
        let method = METHODS.iter().position(|known| *known == method);
        let method = method.unwrap_or(METHODS.len());
        let first = (transport as usize * METHOD_COUNT + method) * OUTCOMES.len();
        let outcomes = self.requests.get(first..first + OUTCOMES.len()).unwrap_or_default();
        self.requests_in_flight.fetch_add(1, Ordering::Relaxed);
        let in_flight = &self.requests_in_flight;
        CountedRequest { outcomes, outcome: OUTCOMES.len() - 1, in_flight }
    }

    pub(crate) fn count_rejection(&self, reason: RejectionReason) {
        if let Some(count) = self.rejections.get(reason as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn count_closed_connection(&self, reason: ClosedConnection) {
        if let Some(count) = self.closed_connections.get(reason as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts an attempt to pass a request on to another replica.
    pub(crate) fn count_forwarded(&self, outcome: ForwardedOutcome) {
        if let Some(count) = self.forwarded.get(outcome as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a session of another replica that continues here.
    pub(crate) fn count_taken_over(&self) {
        self.taken_over.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an event stream until the result is dropped.
    pub(crate) fn open_stream(&self) -> OpenCount {
        OpenCount::new(&self.open_streams)
    }

    /// Counts a connection of HTTP until the result is dropped.
    pub(crate) fn open_connection(&self) -> OpenCount {
        OpenCount::new(&self.open_connections)
    }

    /// Returns the counts as text. A count of requests that is zero has no line.
    pub(crate) fn prometheus(&self, gauges: GatewayGauges) -> String {
        let mut text = String::new();
        let help = "Requests of clients, by transport, method and outcome.";
        write_family(&mut text, "requests_total", "counter", help);
        for (index, count) in self.requests.iter().enumerate() {
            let count = count.load(Ordering::Relaxed);
            let outcome = OUTCOMES.get(index % OUTCOMES.len());
            let index = index / OUTCOMES.len();
            let method = METHODS.get(index % METHOD_COUNT).unwrap_or(&OTHER_METHOD);
            let transport = TRANSPORTS.get(index / METHOD_COUNT);
            if let (Some(transport), Some(outcome), 1..) = (transport, outcome, count) {
                text.push_str(&format!(
                    "innkeeper_gateway_requests_total{{transport=\"{transport}\",\
                     method=\"{method}\",outcome=\"{outcome}\"}} {count}\n"
                ));
            }
        }
        let help = "HTTP requests that the gateway did not accept, by reason.";
        write_family(&mut text, "rejections_total", "counter", help);
        write_reasons(
            &mut text,
            "rejections_total",
            REJECTION_REASONS.iter().zip(&self.rejections),
        );
        let help = "HTTP connections that the gateway ended, by reason.";
        write_family(&mut text, "closed_connections_total", "counter", help);
        let closed = CLOSE_REASONS.iter().zip(&self.closed_connections);
        write_reasons(&mut text, "closed_connections_total", closed);
        let streams = self.open_streams.load(Ordering::Relaxed);
        let connections = self.open_connections.load(Ordering::Relaxed);
        if let Some(has_lease) = gauges.has_lease {
            self.write_replica(&mut text, has_lease);
        }
        let in_flight = self.requests_in_flight.load(Ordering::Relaxed);
        for (name, help, value) in [
            ("requests_in_flight", "Number of requests without a response.", in_flight),
            ("sessions", "Number of sessions.", gauges.sessions),
            ("parked_calls", "Calls that wait for the input of a client.", gauges.parked_calls),
            ("finished_stream_bytes", FINISHED_BYTES_HELP, gauges.finished_stream_bytes),
            ("connections", "Number of open HTTP connections.", connections),
            ("open_streams", "Number of open event streams.", streams),
        ] {
            write_family(&mut text, name, "gauge", help);
            text.push_str(&format!("innkeeper_gateway_{name} {value}\n"));
        }
        if let Some(value) = gauges.open_questions {
            let help = "Questions that wait for an answer or whose approved call runs.";
            write_family(&mut text, "open_questions", "gauge", help);
            text.push_str(&format!("innkeeper_gateway_open_questions {value}\n"));
        }
        text
    }

    fn write_replica(&self, text: &mut String, has_lease: bool) {
        let help = "Attempts to pass a request on to another replica, by outcome.";
        write_family(text, "forwarded_requests_total", "counter", help);
        for (outcome, count) in FORWARDED_OUTCOMES.iter().zip(&self.forwarded) {
            let count = count.load(Ordering::Relaxed);
            text.push_str(&format!(
                "innkeeper_gateway_forwarded_requests_total{{outcome=\"{outcome}\"}} {count}\n"
            ));
        }
        let taken_over = self.taken_over.load(Ordering::Relaxed);
        for (name, kind, help, value) in [
            (
                "sessions_taken_over_total",
                "counter",
                "Sessions of other replicas that continue here.",
                taken_over,
            ),
            ("lease", "gauge", "1 if this replica has a lease, else 0.", u64::from(has_lease)),
        ] {
            write_family(text, name, kind, help);
            text.push_str(&format!("innkeeper_gateway_{name} {value}\n"));
        }
    }
}

fn write_family(text: &mut String, name: &str, kind: &str, help: &str) {
    let name = format!("innkeeper_gateway_{name}");
    text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
}

fn write_reasons<'r>(
    text: &mut String,
    name: &str,
    counts: impl Iterator<Item = (&'r &'static str, &'r AtomicU64)>,
) {
    for (reason, count) in counts {
        let count = count.load(Ordering::Relaxed);
        text.push_str(&format!("innkeeper_gateway_{name}{{reason=\"{reason}\"}} {count}\n"));
    }
}

/// A request that has no outcome yet.
#[derive(Debug)]
pub(crate) struct CountedRequest<'m> {
    outcomes: &'m [AtomicU64],
    outcome: usize,
    in_flight: &'m AtomicUsize,
}

impl CountedRequest<'_> {
    /// Counts the request with the outcome of its reply.
    pub(crate) fn finish<T>(mut self, reply: Result<T, RpcError>) -> Result<T, RpcError> {
        let outcome = match reply.as_ref().err().map(|error| error.kind) {
            None => "ok",
            Some(ErrorKind::Request) => "invalid",
            Some(ErrorKind::UnknownItem) => "unknown_item",
            Some(ErrorKind::Rate { .. }) => "rate",
            Some(ErrorKind::Server) => "server",
            Some(ErrorKind::Unavailable) => "unavailable",
            Some(ErrorKind::ProcessLimit) => "process_limit",
            Some(ErrorKind::Timeout) => "timeout",
            Some(ErrorKind::Protocol) => "protocol",
            Some(ErrorKind::Withheld) => "withheld",
            Some(ErrorKind::NotApproved) => "not_approved",
            Some(ErrorKind::Cancelled) => "cancelled",
            Some(ErrorKind::Internal) => "internal",
        };
        let position = OUTCOMES.iter().position(|known| *known == outcome);
        self.outcome = position.unwrap_or(self.outcome);
        reply
    }
}

impl Drop for CountedRequest<'_> {
    fn drop(&mut self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        if let Some(count) = self.outcomes.get(self.outcome) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// An open event stream or connection.
#[derive(Debug)]
pub(crate) struct OpenCount(Arc<AtomicUsize>);

impl OpenCount {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for OpenCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
