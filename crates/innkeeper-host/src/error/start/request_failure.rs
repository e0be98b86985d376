//! The failure of a request of the start, without the name of the server.

use std::fmt::{self, Display};

use innkeeper_protocol::method;

use super::super::display::{BodyWords, ErrorChain, Seconds, TruncatedMessage};
use super::super::{AuthErrorKind, CallError, ProtocolError, UnavailableReason};

/// Displays why a request of a start failed; the text around it names the server.
pub(super) struct RequestFailure<'a>(pub(super) &'a CallError);

impl Display for RequestFailure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            CallError::Unavailable { reason: UnavailableReason::Unauthorized(error), .. } => {
                fmt_auth_error(error, f)
            }
            CallError::Unavailable { reason, .. } => write!(f, "{reason}"),
            CallError::Timeout { item, timeout, .. } => {
                ToolListFailure(item).fmt(f)?;
                write!(f, "no response to `{item}` within {}", Seconds(*timeout))
            }
            CallError::Server { item, error, .. } => {
                ToolListFailure(item).fmt(f)?;
                let message = TruncatedMessage(&error.message);
                write!(f, "error response to `{item}`: {message} (code {})", error.code)
            }
            CallError::Protocol { item, source, .. } => {
                ToolListFailure(item).fmt(f)?;
                fmt_protocol_error(item, source, f)
            }
            CallError::Routing(_) | CallError::Validation { .. } | CallError::Withheld { .. } => {
                ErrorChain(self.0).fmt(f)
            }
        }
    }
}

fn fmt_auth_error(error: &AuthErrorKind, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match error {
        AuthErrorKind::NoUserAgent => f.write_str(
            "the server requires a sign-in (401); set a token in `headers.Authorization`, or a \
             client in `oauth` with `\"grant\": \"client_credentials\"`",
        ),
        AuthErrorKind::NoAuthorizationServer => f.write_str(
            "the server requires a token (401) and names no authorization server; \
             set a token in `headers.Authorization`",
        ),
        AuthErrorKind::DisallowedAddress { .. }
        | AuthErrorKind::Discovery(_)
        | AuthErrorKind::Registration(_)
        | AuthErrorKind::Declined(_)
        | AuthErrorKind::UserAgentFailed(_)
        | AuthErrorKind::Timeout(_)
        | AuthErrorKind::IssuerMismatch { .. }
        | AuthErrorKind::TokenRequestFailed(_)
        | AuthErrorKind::IdentityProvider(_)
        | AuthErrorKind::InsufficientScope(_)
        | AuthErrorKind::TokenRejected { .. }
        | AuthErrorKind::HeadersHelper(_)
        | AuthErrorKind::Other(_)
        | AuthErrorKind::Shutdown => error.fmt(f),
    }
}

fn fmt_protocol_error(
    item: &str,
    error: &ProtocolError,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match error {
        ProtocolError::HttpStatus { status: status @ (404 | 405 | 410), body } => {
            let words = BodyWords(body);
            write!(f, "no MCP server at this URL ({status}){words}; is the path `/mcp`?")
        }
        ProtocolError::HttpStatus { status: status @ (401 | 403), body } => {
            let words = BodyWords(body);
            write!(f, "the server denies access ({status}){words}; check `headers.Authorization`")
        }
        ProtocolError::HttpStatus { .. } => ErrorChain(error).fmt(f),
        ProtocolError::UnexpectedContentType(content_type) => write!(
            f,
            "no MCP server at this URL (the response is `{content_type}`); is the path `/mcp`?"
        ),
        ProtocolError::Malformed(_)
        | ProtocolError::InvalidResult(_)
        | ProtocolError::TooLarge { .. }
        | ProtocolError::UnsupportedRevision { .. }
        | ProtocolError::Serialization(_)
        | ProtocolError::TooManyRoundTrips { .. }
        | ProtocolError::InputDenied { .. }
        | ProtocolError::UnexpectedResultType(_)
        | ProtocolError::NoTaskResult { .. }
        | ProtocolError::TaskExpired { .. }
        | ProtocolError::MissingResponse => {
            write!(f, "invalid response to `{item}`: {}", ErrorChain(error))
        }
    }
}

/// The first words of a message about the list of tools; empty for other methods. The start does not
/// fail because of another list.
struct ToolListFailure<'a>(&'a str);

impl Display for ToolListFailure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 == method::TOOLS_LIST { "could not list its tools: " } else { "" })
    }
}
