//! What a remote server is to be: its transport, its quirks, its faults.

use std::path::{Path, PathBuf};

use super::fault::Fault;
use super::serve::Served;
use super::{Remote, listen};
use crate::{Fixture, fx_program};

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// Streamable HTTP, of the eras the fixture server speaks.
    Streamable,
    /// HTTP with a stream of events beside it, as in the first revision.
    Sse,
    /// One text frame for each message.
    WebSocket,
    /// None: every request is only remembered.
    Recorder,
}

impl Wire {
    /// The `type` of a server's entry.
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Self::Streamable | Self::Recorder => "http",
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
        }
    }

    /// The path the server is reached at.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Streamable | Self::WebSocket | Self::Recorder => "/mcp",
            Self::Sse => "/sse",
        }
    }
}

/// Where a server of the first revision says that messages are to be posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A path with the session in its query.
    Relative,
    /// The same as a whole address.
    Absolute,
    /// At this origin, such as `http://127.0.0.1:4000`, which need not be the server's.
    At(String),
    /// Nowhere: the stream opens and says nothing.
    Never,
}

/// A remote server to be started.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) fixture: Option<Fixture>,
    pub(super) wire: Wire,
    pub(super) socket: Option<PathBuf>,
    pub(super) json: bool,
    pub(super) sessions: bool,
    pub(super) get: bool,
    pub(super) event_ids: bool,
    pub(super) endpoint: Endpoint,
    pub(super) post_status: u16,
    pub(super) subprotocol: bool,
    pub(super) type_name: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) faults: Vec<Fault>,
}

impl Plan {
    pub(super) fn new(fixture: Option<Fixture>, wire: Wire) -> Self {
        Self {
            fixture,
            wire,
            socket: None,
            json: false,
            sessions: true,
            get: true,
            event_ids: false,
            endpoint: Endpoint::Relative,
            post_status: 405,
            subprotocol: true,
            type_name: None,
            headers: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Streamable HTTP at `/mcp`: with sessions for clients of the legacy era, without for modern
    /// ones, each where the fixture server's `--era` speaks it.
    #[must_use]
    pub fn streamable(mut self) -> Self {
        self.wire = Wire::Streamable;
        self
    }

    /// HTTP+SSE at `/sse`. What is posted there is answered with 405, so that a client that tries
    /// Streamable HTTP first (see [`Plan::typed`]) has something to fall back from.
    #[must_use]
    pub fn sse(mut self) -> Self {
        self.wire = Wire::Sse;
        self
    }

    /// A WebSocket at `/mcp`, with the subprotocol `mcp`.
    #[must_use]
    pub fn websocket(mut self) -> Self {
        self.wire = Wire::WebSocket;
        self
    }

    /// Listens on a unix socket instead of a port. The path must not exist yet.
    #[must_use]
    pub fn on_unix_socket(mut self, path: &Path) -> Self {
        self.socket = Some(path.to_owned());
        self
    }

    /// Answers requests with one JSON body instead of a stream of events.
    #[must_use]
    pub fn answers_as_json(mut self) -> Self {
        self.json = true;
        self
    }

    /// Issues no session id: all legacy clients talk to the fixture server last initialized.
    #[must_use]
    pub fn without_session(mut self) -> Self {
        self.sessions = false;
        self
    }

    /// Answers GET with 405: there is no stream for what the server starts by itself.
    #[must_use]
    pub fn without_get(mut self) -> Self {
        self.get = false;
        self
    }

    /// Opens each stream of the legacy era with an empty event, and gives every event an id that
    /// the stream can be taken up from.
    #[must_use]
    pub fn with_event_ids(mut self) -> Self {
        self.event_ids = true;
        self
    }

    /// Where the first event of HTTP+SSE says that messages are to be posted.
    #[must_use]
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.endpoint = endpoint;
        self
    }

    /// Answers what is posted to the address of the stream of HTTP+SSE with this status.
    #[must_use]
    pub fn refusing_post(mut self, status: u16) -> Self {
        self.post_status = status;
        self
    }

    /// Opens WebSockets without agreeing to the subprotocol.
    #[must_use]
    pub fn without_subprotocol(mut self) -> Self {
        self.subprotocol = false;
        self
    }

    /// The `type` in the server's entry of the configuration, whatever the transport is.
    #[must_use]
    pub fn typed(mut self, name: &str) -> Self {
        self.type_name = Some(name.to_owned());
        self
    }

    /// Adds a header to the server's entry of the configuration.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a fault. Of several for the same request, the first added counts.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Starts listening.
    ///
    /// # Panics
    ///
    /// When the address cannot be listened at, the fixture server has not been built, or a fault is
    /// none of this transport.
    pub async fn start(self) -> Remote {
        if self.fixture.is_some() {
            // Looked for here, where a panic reaches the test.
            drop(fx_program());
        }
        for fault in &self.faults {
            let fits = fault.act.fits(self.wire);
            assert!(fits, "{:?} is no fault of {:?}", fault.act, self.wire);
        }
        let listener = listen::bind(self.socket.as_deref()).await;
        let listener = listener.unwrap_or_else(|error| panic!("the remote server: {error}"));
        let served = Served::new(self, listener.origin());
        let accepting = listener.accept(std::sync::Arc::clone(&served));
        served.tasks().spawn(accepting);
        Remote { served }
    }
}
