//! The revisions that a server names in an error of the handshake.

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::{Era, ErrorObject, Revision, skim};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::ProtocolError;
use crate::session::RequestError;

/// Maximum number of characters shown of a server's revisions.
const MAX_SHOWN_CHARS: usize = 200;

/// Returns whether only servers of the modern era use this error code.
pub(super) fn is_modern_error(code: i64) -> bool {
    [
        code::HEADER_MISMATCH,
        code::MISSING_REQUIRED_CLIENT_CAPABILITY,
        code::UNSUPPORTED_PROTOCOL_VERSION,
    ]
    .contains(&code)
}

pub(super) fn is_unsupported_revision(error: &ErrorObject) -> bool {
    error.code == code::UNSUPPORTED_PROTOCOL_VERSION
}

/// Returns whether a version error lists this revision as supported.
pub(super) fn supports_revision(error: &ErrorObject, revision: Revision) -> bool {
    let data =
        error.data.as_deref().and_then(|data| serde_json::from_str::<Value>(data.get()).ok());
    let supported = data.as_ref().and_then(|data| data.get("supported")?.as_array());
    is_unsupported_revision(error)
        && supported.is_some_and(|all| all.iter().any(|version| *version == revision.as_str()))
}

/// Returns the newest legacy revision, other than the latest one, that the server names in the
/// rejection of `initialize`: in `data.supported`, in other data, or in the text of a gateway.
pub(super) fn offered_revision(rejection: &RequestError) -> Option<Revision> {
    let text = match rejection {
        RequestError::ErrorResponse(error) => {
            let data = error.data.as_deref().map(RawValue::get).unwrap_or_default();
            let supported = skim::member(data, "supported").unwrap_or(data);
            if supported.is_empty() { error.message.as_str() } else { supported }
        }
        RequestError::Protocol(ProtocolError::HttpStatus { status: 400, body }) => body,
        RequestError::Protocol(_)
        | RequestError::TooLarge { .. }
        | RequestError::Unavailable { .. }
        | RequestError::Timeout => return None,
    };
    let mut known = Revision::ALL.iter().rev().copied();
    known.find(|revision| {
        revision.era() == Era::Legacy
            && *revision != Revision::LATEST_LEGACY
            && text.contains(revision.as_str())
    })
}

pub(super) fn rejected_revision_error(error: &ErrorObject) -> RequestError {
    let data = error.data.as_deref().and_then(|data| {
        let data: Value = serde_json::from_str(data.get()).ok()?;
        Some(data.get("supported")?.to_string())
    });
    unknown_revision_error(&data.unwrap_or_else(|| error.message.clone()))
}

pub(super) fn unknown_revision_error(server_versions: &str) -> RequestError {
    let known_versions: Vec<&str> =
        Revision::ALL.iter().map(|revision| revision.as_str()).collect();
    let server_versions = server_versions.chars().take(MAX_SHOWN_CHARS).collect::<String>();
    let server_versions = crate::text::display_safe(&server_versions).into();
    RequestError::Protocol(ProtocolError::UnsupportedRevision {
        requested: server_versions,
        supported: known_versions.join(", ").into(),
    })
}
