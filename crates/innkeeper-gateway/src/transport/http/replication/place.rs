//! Where a session is, and what its client gets if it is nowhere.

use std::sync::Arc;

use axum::body::Body;
use http::{Response, StatusCode};

use crate::replicas::Ownership;
use crate::transport::http::response::{rejected, rpc_error_response};
use crate::transport::http::session::Session;
use crate::transport::http::unexpected_message;

/// The state of a session that a client names.
pub(in crate::transport::http) enum Place {
    Here(Arc<Session>),
    /// The replica with the state of the session ended. Its event streams can be read to their ends.
    Ended {
        id: Box<str>,
        ownership: Arc<Ownership>,
    },
}

pub(in crate::transport::http) type Found<T> = Result<T, Box<Response<Body>>>;

/// The status 404 would say that the session has ended (2025-11-25, Session Management).
pub(in crate::transport::http) fn events_gone() -> Response<Body> {
    rejected(
        StatusCode::CONFLICT,
        "the session has no events after `Last-Event-ID` any more; open a stream without the header",
    )
}

/// Returns the response to a request whose session does not exist.
pub(in crate::transport::http) fn no_session() -> Response<Body> {
    let error = unexpected_message("session: it does not exist or has expired; send `initialize`");
    rpc_error_response(StatusCode::NOT_FOUND, None, &error)
}
