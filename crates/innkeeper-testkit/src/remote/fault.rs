//! The faults of remote servers as data: what goes wrong, and for which requests.

use std::time::Duration;

use super::plan::Wire;

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    /// Another response, and the fixture server never hears of the request.
    Reply(Reply),
    /// The session is forgotten and its fixture server killed; then 404.
    Forget,
    /// The head of the response is late, or never comes.
    Delay(Option<Duration>),
    /// The connection is reset before there is a response.
    HangUp,
    /// Headers without end.
    EndlessHead,
    /// The answer under another content type.
    Type(String),
    /// The answer, compressed.
    Gzip,
    /// Half the answer; the rest late or never.
    Stall(Option<Duration>),
    /// Half the answer, then the connection is reset.
    Reset,
    /// The stream ends before the answer, which is there for who takes the stream up again.
    Cut { retry: Option<Duration>, twice: bool },
    /// A message of so many bytes before the answer.
    Long(usize),
    /// The answer twice.
    Twice,
    /// The answer over many lines.
    Pretty,
    /// The answer in a binary frame.
    Binary,
    /// The answer in so many frames.
    Fragments(usize),
    /// So many pings before the answer.
    Pings(usize),
}

impl Act {
    /// Whether a transport can go wrong this way.
    pub(super) fn fits(&self, wire: Wire) -> bool {
        match self {
            Self::Reply(_) | Self::Delay(_) | Self::HangUp | Self::EndlessHead => true,
            Self::Stall(_) | Self::Reset | Self::Long(_) | Self::Twice | Self::Pretty => {
                wire != Wire::Recorder
            }
            Self::Forget | Self::Type(_) | Self::Gzip | Self::Cut { .. } => {
                wire == Wire::Streamable
            }
            Self::Binary | Self::Fragments(_) | Self::Pings(_) => wire == Wire::WebSocket,
        }
    }
}

/// A response of a fault's own.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
    /// Code and message of a JSON-RPC error with the request's id, instead of the body.
    pub(super) error: Option<(i64, String)>,
}

/// One fault: what goes wrong, and for which requests.
///
/// It is for every request until narrowed down by [`Fault::on`] or [`Fault::on_http`], and then by
/// [`Fault::nth`] or [`Fault::times`].
#[derive(Clone, Debug)]
pub struct Fault {
    pub(super) act: Act,
    http: Option<String>,
    rpc: Option<String>,
    first: usize,
    last: usize,
}

impl Fault {
    fn new(act: Act) -> Self {
        Self { act, http: None, rpc: None, first: 1, last: usize::MAX }
    }

    fn reply(status: u16, content_type: Option<&str>, body: &str) -> Self {
        let headers = content_type.map(|value| ("content-type".to_owned(), value.to_owned()));
        let headers = headers.into_iter().collect();
        Self::new(Act::Reply(Reply { status, headers, body: body.to_owned(), error: None }))
    }

    /// This status and no body; see [`Fault::header`] and [`Fault::rpc_error`].
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::reply(status, None, "")
    }

    /// This status and a body of this content type.
    #[must_use]
    pub fn body(status: u16, content_type: &str, body: &str) -> Self {
        Self::reply(status, Some(content_type), body)
    }

    /// 200 with a page for people.
    #[must_use]
    pub fn html() -> Self {
        Self::body(200, "text/html", "<!doctype html><title>Sign in</title><p>Sign in first.")
    }

    /// 200 with nothing in it.
    #[must_use]
    pub fn empty() -> Self {
        Self::status(200)
    }

    /// A redirect with this status to this address.
    #[must_use]
    pub fn redirect(status: u16, to: &str) -> Self {
        Self::status(status).header("location", to)
    }

    /// The session ends as if the server had been started anew: 404, its process is killed.
    #[must_use]
    pub fn session_gone() -> Self {
        Self::new(Act::Forget)
    }

    /// The head of the response comes this late; over a WebSocket, the answer.
    #[must_use]
    pub fn delay(by: Duration) -> Self {
        Self::new(Act::Delay(Some(by)))
    }

    /// The head of the response never comes; over a WebSocket, the answer.
    #[must_use]
    pub fn silence() -> Self {
        Self::new(Act::Delay(None))
    }

    /// The connection is reset before there is a response; the fixture server never hears of it.
    /// An open WebSocket ends without a close frame.
    #[must_use]
    pub fn hang_up() -> Self {
        Self::new(Act::HangUp)
    }

    /// Header lines of the response without end.
    #[must_use]
    pub fn endless_headers() -> Self {
        Self::new(Act::EndlessHead)
    }

    /// The answer under this content type.
    #[must_use]
    pub fn content_type(value: &str) -> Self {
        Self::new(Act::Type(value.to_owned()))
    }

    /// The answer with `Content-Encoding: gzip`, whatever the client accepts.
    #[must_use]
    pub fn gzip() -> Self {
        Self::new(Act::Gzip)
    }

    /// The first half of the answer's event, body or frame, and never the rest.
    #[must_use]
    pub fn stall() -> Self {
        Self::new(Act::Stall(None))
    }

    /// The first half of the answer, and the rest this much later.
    #[must_use]
    pub fn stall_for(pause: Duration) -> Self {
        Self::new(Act::Stall(Some(pause)))
    }

    /// The first half of the answer, then a reset; a WebSocket ends without a close frame.
    #[must_use]
    pub fn reset() -> Self {
        Self::new(Act::Reset)
    }

    /// The stream of a legacy request ends after an empty event with an id; the answer is there
    /// for a GET with `Last-Event-ID`.
    #[must_use]
    pub fn cut() -> Self {
        Self::new(Act::Cut { retry: None, twice: false })
    }

    /// A message of exactly this many bytes of JSON before the answer, 96 at least; white space
    /// before an answer that is a JSON body.
    #[must_use]
    pub fn long(bytes: usize) -> Self {
        Self::new(Act::Long(bytes))
    }

    /// The answer twice.
    #[must_use]
    pub fn twice() -> Self {
        Self::new(Act::Twice)
    }

    /// The answer's JSON over several lines.
    #[must_use]
    pub fn pretty() -> Self {
        Self::new(Act::Pretty)
    }

    /// The answer in a binary frame.
    #[must_use]
    pub fn binary() -> Self {
        Self::new(Act::Binary)
    }

    /// The answer in this many frames.
    #[must_use]
    pub fn fragments(count: usize) -> Self {
        Self::new(Act::Fragments(count.max(1)))
    }

    /// This many pings before the answer.
    #[must_use]
    pub fn pings(count: usize) -> Self {
        Self::new(Act::Pings(count))
    }

    /// Adds a header to a response of the fault's own, such as `retry-after`.
    ///
    /// # Panics
    ///
    /// When the fault has no response of its own.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let Act::Reply(reply) = &mut self.act else { panic!("{:?} has no headers", self.act) };
        reply.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Lets a response of the fault's own be a JSON-RPC error with the id of the request.
    ///
    /// # Panics
    ///
    /// When the fault has no response of its own.
    #[must_use]
    pub fn rpc_error(mut self, code: i64, message: &str) -> Self {
        let Act::Reply(reply) = &mut self.act else { panic!("{:?} has no body", self.act) };
        reply.error = Some((code, message.to_owned()));
        self.header("content-type", "application/json")
    }

    /// Adds `retry:` to the event a cut stream ends with.
    ///
    /// # Panics
    ///
    /// When the fault is no cut.
    #[must_use]
    pub fn retry_in(mut self, delay: Duration) -> Self {
        let Act::Cut { retry, .. } = &mut self.act else { panic!("{:?} is no cut", self.act) };
        *retry = Some(delay);
        self
    }

    /// Gives every event of a cut stream twice, under the same id, when it is taken up.
    ///
    /// # Panics
    ///
    /// When the fault is no cut.
    #[must_use]
    pub fn repeating(mut self) -> Self {
        let Act::Cut { twice, .. } = &mut self.act else { panic!("{:?} is no cut", self.act) };
        *twice = true;
        self
    }

    /// Only for messages of this JSON-RPC method.
    #[must_use]
    pub fn on(mut self, method: &str) -> Self {
        self.rpc = Some(method.to_owned());
        self
    }

    /// Only for requests of this HTTP method. What comes through a WebSocket has none.
    #[must_use]
    pub fn on_http(mut self, method: &str) -> Self {
        self.http = Some(method.to_owned());
        self
    }

    /// Only for the nth of them, counted from one.
    #[must_use]
    pub fn nth(mut self, number: usize) -> Self {
        (self.first, self.last) = (number, number);
        self
    }

    /// Only for the first so many of them.
    #[must_use]
    pub fn times(mut self, count: usize) -> Self {
        (self.first, self.last) = (1, count);
        self
    }

    /// Whether it is for such a request at all, before they are counted.
    pub(super) fn is_for(&self, http: Option<&str>, rpc: Option<&str>) -> bool {
        let fits = |wanted: &Option<String>, have: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| have == Some(wanted))
        };
        fits(&self.http, http) && fits(&self.rpc, rpc)
    }

    /// Whether it is for the request with this number among those it is for.
    pub(super) fn strikes(&self, number: usize) -> bool {
        (self.first..=self.last).contains(&number)
    }
}
