//! The builder of remote servers: transport, variants, faults.

use std::path::{Path, PathBuf};

use super::fault::Fault;
use super::server::ServerState;
use super::{RemoteServer, listener};
use crate::{Fixture, fixture_program};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemoteTransport {
    /// Streamable HTTP in the eras of the fixture server.
    Streamable,
    /// HTTP with a separate SSE stream, as in the first protocol version.
    Sse,
    /// A WebSocket with one text frame per message.
    WebSocket,
    /// No transport: the server only records requests.
    RequestRecorder,
}

impl RemoteTransport {
    /// The `type` in a server's configuration entry.
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Self::Streamable | Self::RequestRecorder => "http",
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
        }
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Streamable | Self::WebSocket | Self::RequestRecorder => "/mcp",
            Self::Sse => "/sse",
        }
    }
}

/// The message endpoint that an HTTP+SSE server announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnnouncedEndpoint {
    /// A path with the session id in the query.
    Relative,
    /// The same endpoint as an absolute URL.
    Absolute,
    /// An endpoint at this origin, such as `http://127.0.0.1:4000`, which can be another server.
    Fixed(String),
    /// No endpoint: the stream opens without an event.
    Never,
}

/// A builder of remote servers.
#[derive(Clone, Debug)]
pub struct RemoteServerBuilder {
    pub(super) fixture: Option<Fixture>,
    pub(super) transport: RemoteTransport,
    pub(super) socket: Option<PathBuf>,
    pub(super) streamable: StreamableOptions,
    pub(super) sse: SseOptions,
    pub(super) accept_subprotocol: bool,
    pub(super) entry: EntryOptions,
    pub(super) faults: Vec<Fault>,
}

/// The variants of Streamable HTTP.
#[derive(Clone, Debug)]
pub(super) struct StreamableOptions {
    pub(super) json_responses: bool,
    pub(super) use_sessions: bool,
    pub(super) allow_get: bool,
    pub(super) event_ids: bool,
}

/// The variants of HTTP+SSE.
#[derive(Clone, Debug)]
pub(super) struct SseOptions {
    pub(super) endpoint: AnnouncedEndpoint,
    pub(super) post_status: u16,
}

/// The server's configuration entry.
#[derive(Clone, Debug, Default)]
pub(super) struct EntryOptions {
    pub(super) type_name: Option<String>,
    pub(super) headers: Vec<(String, String)>,
}

impl RemoteServerBuilder {
    pub(super) fn new(fixture: Option<Fixture>, transport: RemoteTransport) -> Self {
        Self {
            fixture,
            transport,
            socket: None,
            streamable: StreamableOptions {
                json_responses: false,
                use_sessions: true,
                allow_get: true,
                event_ids: false,
            },
            sse: SseOptions { endpoint: AnnouncedEndpoint::Relative, post_status: 405 },
            accept_subprotocol: true,
            entry: EntryOptions::default(),
            faults: Vec::new(),
        }
    }

    /// Streamable HTTP at `/mcp`: with sessions for legacy clients, without sessions for modern
    /// clients, each if the `--era` of the fixture server supports it.
    #[must_use]
    pub fn streamable(mut self) -> Self {
        self.transport = RemoteTransport::Streamable;
        self
    }

    /// HTTP+SSE at `/sse`. A POST to this path gets status 405, so that a client that tries
    /// Streamable HTTP first (see [`RemoteServerBuilder::with_type_name`]) can fall back.
    #[must_use]
    pub fn sse(mut self) -> Self {
        self.transport = RemoteTransport::Sse;
        self
    }

    /// A WebSocket at `/mcp`, with the subprotocol `mcp`.
    #[must_use]
    pub fn websocket(mut self) -> Self {
        self.transport = RemoteTransport::WebSocket;
        self
    }

    /// Listens on a unix socket instead of a port. The path must not exist.
    #[must_use]
    pub fn on_unix_socket(mut self, path: &Path) -> Self {
        self.socket = Some(path.to_owned());
        self
    }

    /// Responds with one JSON body instead of an SSE stream.
    #[must_use]
    pub fn with_json_responses(mut self) -> Self {
        self.streamable.json_responses = true;
        self
    }

    /// Issues no session id: all legacy clients share the most recently initialized fixture server.
    #[must_use]
    pub fn without_session(mut self) -> Self {
        self.streamable.use_sessions = false;
        self
    }

    /// Responds to GET with 405: there is no stream for messages outside requests.
    #[must_use]
    pub fn without_get(mut self) -> Self {
        self.streamable.allow_get = false;
        self
    }

    /// Opens each legacy stream with an empty event, and gives every event an id for resumption.
    #[must_use]
    pub fn with_event_ids(mut self) -> Self {
        self.streamable.event_ids = true;
        self
    }

    /// Sets the message endpoint in the first event of HTTP+SSE.
    #[must_use]
    pub fn endpoint(mut self, endpoint: AnnouncedEndpoint) -> Self {
        self.sse.endpoint = endpoint;
        self
    }

    /// Responds to a POST to the HTTP+SSE stream path with this status.
    #[must_use]
    pub fn reject_post_with(mut self, status: u16) -> Self {
        self.sse.post_status = status;
        self
    }

    /// Accepts WebSockets without a subprotocol.
    #[must_use]
    pub fn without_subprotocol(mut self) -> Self {
        self.accept_subprotocol = false;
        self
    }

    /// Sets the `type` in the server's configuration entry, independent of the transport.
    #[must_use]
    pub fn with_type_name(mut self, name: &str) -> Self {
        self.entry.type_name = Some(name.to_owned());
        self
    }

    /// Adds a header to the server's configuration entry.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.entry.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a fault. The first matching fault applies.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Starts the server.
    ///
    /// # Panics
    ///
    /// If the address is not available, the fixture server is not built, or the transport does not
    /// support a fault.
    pub async fn start(self) -> RemoteServer {
        if self.fixture.is_some() {
            // A panic here reaches the test.
            let _ = fixture_program();
        }
        for fault in &self.faults {
            let fits = fault.action.is_supported_by(self.transport);
            assert!(fits, "{:?} is not supported by {:?}", fault.action, self.transport);
        }
        let listener = listener::bind(self.socket.as_deref()).await;
        let listener =
            listener.unwrap_or_else(|error| panic!("cannot start the remote server: {error}"));
        let server = ServerState::new(self, listener.origin());
        let accepting = listener.serve_connections(std::sync::Arc::clone(&server));
        server.tasks().spawn(accepting);
        RemoteServer { server }
    }
}
