//! Faults of remote servers: action and affected requests.

use std::time::Duration;

use super::builder::RemoteTransport;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum FaultAction {
    /// A fixed response; the fixture server does not receive the request.
    Reply(FaultResponse),
    /// Ends the session and kills its fixture server; then 404.
    ForgetSession,
    /// A delayed or missing response head.
    Delay(Option<Duration>),
    /// A reset of the connection before the response.
    ResetBeforeResponse,
    /// An endless sequence of header lines.
    EndlessHeaders,
    /// A response with another content type.
    ContentType(String),
    /// A compressed response.
    Gzip,
    /// Half a response; the rest arrives late or never.
    Stall(Option<Duration>),
    /// Half a response, then a reset of the connection.
    ResetMidBody,
    /// The end of the stream before the response; a resumed stream delivers the response.
    CutStream { retry: Option<Duration>, replay_twice: bool },
    /// A message of this many bytes before the response.
    PrependMessage(usize),
    /// A duplicate response.
    Duplicate,
    /// A response over many lines.
    PrettyPrint,
    /// A response in a binary frame.
    BinaryFrame,
    /// A response in this many frames.
    Fragments(usize),
    /// This many pings before the response.
    Pings(usize),
}

impl FaultAction {
    pub(super) fn is_supported_by(&self, transport: RemoteTransport) -> bool {
        match self {
            Self::Reply(_) | Self::Delay(_) | Self::ResetBeforeResponse | Self::EndlessHeaders => {
                true
            }
            Self::Stall(_)
            | Self::ResetMidBody
            | Self::PrependMessage(_)
            | Self::Duplicate
            | Self::PrettyPrint => transport != RemoteTransport::RequestRecorder,
            Self::ForgetSession | Self::ContentType(_) | Self::Gzip | Self::CutStream { .. } => {
                transport == RemoteTransport::Streamable
            }
            Self::BinaryFrame | Self::Fragments(_) | Self::Pings(_) => {
                transport == RemoteTransport::WebSocket
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct FaultResponse {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
    /// Code and message of a JSON-RPC error with the request's id, instead of the body.
    pub(super) error: Option<(i64, String)>,
}

/// A fault with the requests that it affects.
///
/// A fault affects every request unless [`Fault::on_rpc_method`] or [`Fault::on_http_method`], and
/// then [`Fault::only_nth`] or [`Fault::first_n`], restrict it.
#[derive(Clone, Debug)]
pub struct Fault {
    pub(super) action: FaultAction,
    http: Option<String>,
    rpc: Option<String>,
    first_match: usize,
    last_match: usize,
}

impl Fault {
    fn new(action: FaultAction) -> Self {
        Self { action, http: None, rpc: None, first_match: 1, last_match: usize::MAX }
    }

    fn respond_with(status: u16, content_type: Option<&str>, body: &str) -> Self {
        let headers = content_type.map(|value| ("content-type".to_owned(), value.to_owned()));
        let headers = headers.into_iter().collect();
        Self::new(FaultAction::Reply(FaultResponse {
            status,
            headers,
            body: body.to_owned(),
            error: None,
        }))
    }

    /// A response with this status and no body; see [`Fault::header`] and [`Fault::rpc_error`].
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::respond_with(status, None, "")
    }

    /// A response with this status, content type and body.
    #[must_use]
    pub fn body(status: u16, content_type: &str, body: &str) -> Self {
        Self::respond_with(status, Some(content_type), body)
    }

    /// Status 200 with an HTML page.
    #[must_use]
    pub fn html_page() -> Self {
        Self::body(200, "text/html", "<!doctype html><title>Sign in</title><p>Sign in first.")
    }

    /// Status 200 with an empty body.
    #[must_use]
    pub fn empty_response() -> Self {
        Self::status(200)
    }

    /// A redirect with this status to this URL.
    #[must_use]
    pub fn redirect(status: u16, to: &str) -> Self {
        Self::status(status).header("location", to)
    }

    /// The end of the session as after a server restart: status 404, the process is killed.
    #[must_use]
    pub fn session_gone() -> Self {
        Self::new(FaultAction::ForgetSession)
    }

    /// A delayed response head; over a WebSocket, a delayed response.
    #[must_use]
    pub fn delay(by: Duration) -> Self {
        Self::new(FaultAction::Delay(Some(by)))
    }

    /// No response head; over a WebSocket, no response.
    #[must_use]
    pub fn never_responds() -> Self {
        Self::new(FaultAction::Delay(None))
    }

    /// A reset of the connection before the response; the fixture server does not receive the
    /// request. An open WebSocket ends without a close frame.
    #[must_use]
    pub fn reset_before_response() -> Self {
        Self::new(FaultAction::ResetBeforeResponse)
    }

    /// Endless header lines of the response.
    #[must_use]
    pub fn endless_headers() -> Self {
        Self::new(FaultAction::EndlessHeaders)
    }

    /// A response with this content type.
    #[must_use]
    pub fn content_type(value: &str) -> Self {
        Self::new(FaultAction::ContentType(value.to_owned()))
    }

    /// A response with `Content-Encoding: gzip`, independent of the client's `Accept-Encoding`.
    #[must_use]
    pub fn gzip() -> Self {
        Self::new(FaultAction::Gzip)
    }

    /// The first half of the response's event, body or frame, without the rest.
    #[must_use]
    pub fn stall() -> Self {
        Self::new(FaultAction::Stall(None))
    }

    /// The first half of the response; the rest arrives after the delay.
    #[must_use]
    pub fn stall_for(delay: Duration) -> Self {
        Self::new(FaultAction::Stall(Some(delay)))
    }

    /// The first half of the response, then a reset; a WebSocket ends without a close frame.
    #[must_use]
    pub fn reset_mid_body() -> Self {
        Self::new(FaultAction::ResetMidBody)
    }

    /// The end of a legacy request's stream after an empty event with an id; a GET with
    /// `Last-Event-ID` delivers the response.
    #[must_use]
    pub fn cut_stream() -> Self {
        Self::new(FaultAction::CutStream { retry: None, replay_twice: false })
    }

    /// A message of exactly this many bytes of JSON before the response, at least 96; whitespace
    /// before a JSON body.
    #[must_use]
    pub fn prepend_message(bytes: usize) -> Self {
        Self::new(FaultAction::PrependMessage(bytes))
    }

    /// A duplicate response.
    #[must_use]
    pub fn duplicate() -> Self {
        Self::new(FaultAction::Duplicate)
    }

    /// A response with its JSON over several lines.
    #[must_use]
    pub fn pretty_print() -> Self {
        Self::new(FaultAction::PrettyPrint)
    }

    /// A response in a binary frame.
    #[must_use]
    pub fn binary_frame() -> Self {
        Self::new(FaultAction::BinaryFrame)
    }

    /// A response in this many frames.
    #[must_use]
    pub fn fragments(count: usize) -> Self {
        Self::new(FaultAction::Fragments(count.max(1)))
    }

    /// This many pings before the response.
    #[must_use]
    pub fn pings(count: usize) -> Self {
        Self::new(FaultAction::Pings(count))
    }

    /// Adds a header to a fixed response, such as `retry-after`.
    ///
    /// # Panics
    ///
    /// If the fault has no fixed response.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let FaultAction::Reply(reply) = &mut self.action else {
            panic!("{:?} has no headers", self.action)
        };
        reply.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces the body of a fixed response by a JSON-RPC error with the id of the request.
    ///
    /// # Panics
    ///
    /// If the fault has no fixed response.
    #[must_use]
    pub fn rpc_error(mut self, code: i64, message: &str) -> Self {
        let FaultAction::Reply(reply) = &mut self.action else {
            panic!("{:?} has no body", self.action)
        };
        reply.error = Some((code, message.to_owned()));
        self.header("content-type", "application/json")
    }

    /// Adds `retry:` to the last event of a cut stream.
    ///
    /// # Panics
    ///
    /// If the fault does not cut the stream.
    #[must_use]
    pub fn with_retry_delay(mut self, delay: Duration) -> Self {
        let FaultAction::CutStream { retry, .. } = &mut self.action else {
            panic!("{:?} does not cut the stream", self.action)
        };
        *retry = Some(delay);
        self
    }

    /// Sends every event of a cut stream twice, with the same id, when the stream is resumed.
    ///
    /// # Panics
    ///
    /// If the fault does not cut the stream.
    #[must_use]
    pub fn replaying_twice(mut self) -> Self {
        let FaultAction::CutStream { replay_twice, .. } = &mut self.action else {
            panic!("{:?} does not cut the stream", self.action)
        };
        *replay_twice = true;
        self
    }

    /// Restricts the fault to messages with this JSON-RPC method.
    #[must_use]
    pub fn on_rpc_method(mut self, method: &str) -> Self {
        self.rpc = Some(method.to_owned());
        self
    }

    /// Restricts the fault to requests with this HTTP method. Messages over a WebSocket have none.
    #[must_use]
    pub fn on_http_method(mut self, method: &str) -> Self {
        self.http = Some(method.to_owned());
        self
    }

    /// Restricts the fault to the nth affected request, starting at one.
    #[must_use]
    pub fn only_nth(mut self, number: usize) -> Self {
        (self.first_match, self.last_match) = (number, number);
        self
    }

    /// Restricts the fault to the first `count` affected requests.
    #[must_use]
    pub fn first_n(mut self, count: usize) -> Self {
        (self.first_match, self.last_match) = (1, count);
        self
    }

    /// Whether the fault affects requests with these methods, regardless of their number.
    pub(super) fn matches_request(&self, http: Option<&str>, rpc: Option<&str>) -> bool {
        self.http.as_deref().is_none_or(|value| http == Some(value))
            && self.rpc.as_deref().is_none_or(|value| rpc == Some(value))
    }

    /// Whether the fault affects the request with this number among the matching requests.
    pub(super) fn applies_to(&self, number: usize) -> bool {
        (self.first_match..=self.last_match).contains(&number)
    }
}
