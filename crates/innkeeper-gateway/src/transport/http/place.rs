//! Where a session is, and what its client gets if it is nowhere.

use std::sync::Arc;

use axum::body::Body;
use http::{Response, StatusCode};

use super::response::{rejected, rpc_error_response};
use super::session::Session;
use super::unexpected_message;
use crate::replicas::Ownership;

/// The state of a session that a client names.
pub(super) enum Place {
    Here(Arc<Session>),
    /// The replica with the state of the session ended. Its event streams can be read to their ends.
    Ended {
        id: Box<str>,
        ownership: Arc<Ownership>,
    },
}

pub(super) type Found<T> = Result<T, Box<Response<Body>>>;

/// The status 404 would say that the session has ended (2025-11-25, Session Management).
pub(super) fn events_gone() -> Response<Body> {
    rejected(
        StatusCode::CONFLICT,
        "the session has no events after `Last-Event-ID` any more; open a stream without the header",
    )
}

/// Returns the response to a request whose session does not exist.
pub(super) fn no_session() -> Response<Body> {
    let error = unexpected_message("session: it does not exist or has expired; send `initialize`");
    rpc_error_response(StatusCode::NOT_FOUND, None, &error)
}
