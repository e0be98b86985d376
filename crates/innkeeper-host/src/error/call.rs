//! The error of a call, prompt or resource request.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::ErrorObject;
use serde::Serialize;

use super::display::{AttemptCount, JoinedList, TimeoutLimit, TruncatedMessage};
use super::{AuthErrorKind, ErrorClass, ProtocolError, RoutingError, UnavailableReason, Violation};
use crate::guard::Finding;

/// The reason why a call, prompt or resource request has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The name matches no server, tool, prompt or resource, or more than one.
    #[error(transparent)]
    Routing(#[from] RoutingError),
    /// The arguments do not match the declared schema, the guard rejects them, or the request with
    /// them is longer than 8 MiB; the request was not sent.
    #[error("invalid arguments for `{item}`: {}", JoinedList(problems))]
    Validation {
        /// Called name of the tool or prompt, the URI, or the method.
        item: Box<str>,
        /// Problems of the arguments, of the parameters or of `_meta`.
        problems: Vec<Violation>,
    },
    /// The server is unavailable, or became unavailable before its response.
    #[error("server `{server}` is unavailable: {reason}{}", AttemptCount(*attempts))]
    Unavailable {
        /// Name of the server.
        server: Arc<str>,
        /// Reason why the server is unavailable.
        reason: UnavailableReason,
        /// Whether the request may have reached the server.
        may_have_run: bool,
        /// Number of attempts to send the request; 0 if the server was already unavailable.
        attempts: u32,
    },
    /// No response within the timeout; the host sent a cancellation to the server.
    #[error("server `{server}` did not respond to `{item}` within {}", TimeoutLimit(*timeout, *is_total))]
    Timeout {
        /// Name of the server.
        server: Arc<str>,
        /// Tool, prompt, URI or method.
        item: Box<str>,
        /// The timeout.
        timeout: Duration,
        /// Whether this is the server's `maxTotalTimeout`: its progress or questions had extended the
        /// timeout of the call.
        is_total: bool,
    },
    /// The response violates JSON-RPC or MCP, or requests input that the server does not receive
    /// ([`ProtocolError::InputDenied`]).
    #[error("server `{server}` {} `{item}`", protocol_failure(source))]
    Protocol {
        /// Name of the server.
        server: Arc<str>,
        /// Tool, prompt, URI or method.
        item: Box<str>,
        /// The violation.
        #[source]
        source: ProtocolError,
    },
    /// The server returned a JSON-RPC error.
    #[error("server `{server}` returned an error for `{item}`: {} (code {})", TruncatedMessage(&error.message), error.code)]
    Server {
        /// Name of the server.
        server: Arc<str>,
        /// Tool, prompt, URI or method.
        item: Box<str>,
        /// Error object from the server.
        error: ErrorObject,
    },
    /// The call ran, and the guard withheld its result. A retry would run the call again.
    #[error(
        "the result of `{item}` of server `{server}` was withheld after the call ran: {}; \
         set `guard.results` to `flag` to allow such results",
        JoinedList(findings)
    )]
    Withheld {
        /// Name of the server.
        server: Arc<str>,
        /// Name of the tool.
        item: Box<str>,
        /// Guard findings, at least one.
        findings: Vec<Finding>,
    },
}

/// Returns what a server did in a response that is not a result.
fn protocol_failure(error: &ProtocolError) -> &'static str {
    match error {
        ProtocolError::InputDenied { .. } => "received no input for",
        ProtocolError::Malformed(_)
        | ProtocolError::InvalidResult(_)
        | ProtocolError::TooLarge { .. }
        | ProtocolError::UnsupportedRevision { .. }
        | ProtocolError::Serialization(_)
        | ProtocolError::TooManyRoundTrips { .. }
        | ProtocolError::UnexpectedResultType(_)
        | ProtocolError::NoTaskResult { .. }
        | ProtocolError::TaskExpired { .. }
        | ProtocolError::HttpStatus { .. }
        | ProtocolError::UnexpectedContentType(_)
        | ProtocolError::MissingResponse => "violated the protocol in its response to",
    }
}

impl CallError {
    /// Returns whether a user must sign in at the server, and the host has no user agent.
    pub fn needs_user_sign_in(&self) -> bool {
        matches!(self, Self::Unavailable { reason: UnavailableReason::Unauthorized(error), .. }
            if **error == AuthErrorKind::NoUserAgent)
    }

    /// Returns the kind of the error, for counting and matching.
    pub fn kind(&self) -> CallErrorKind {
        match self {
            Self::Routing(_) => CallErrorKind::Routing,
            Self::Validation { .. } => CallErrorKind::Validation,
            Self::Unavailable { .. } => CallErrorKind::Unavailable,
            Self::Timeout { .. } => CallErrorKind::Timeout,
            Self::Protocol { .. } => CallErrorKind::Protocol,
            Self::Server { .. } => CallErrorKind::Server,
            Self::Withheld { .. } => CallErrorKind::Withheld,
        }
    }

    /// Returns the class, which start and configuration errors share.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Routing(_) => ErrorClass::Routing,
            Self::Validation { .. } => ErrorClass::Validation,
            Self::Unavailable { .. } => ErrorClass::ServerUnavailable,
            Self::Timeout { .. } => ErrorClass::Timeout,
            Self::Protocol { .. } => ErrorClass::Protocol,
            Self::Server { .. } => ErrorClass::Server,
            Self::Withheld { .. } => ErrorClass::Withheld,
        }
    }

    /// Returns the reason without the server and the item.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Server { error, .. } => {
                format!("{} (code {})", TruncatedMessage(&error.message), error.code)
            }
            Self::Protocol { source, .. } => source.to_string(),
            Self::Timeout { .. }
            | Self::Unavailable { .. }
            | Self::Routing(_)
            | Self::Validation { .. }
            | Self::Withheld { .. } => self.to_string(),
        }
    }

    /// Sets the number of attempts.
    pub(crate) fn with_attempts(mut self, times: u32) -> Self {
        if let Self::Unavailable { attempts, .. } = &mut self {
            *attempts = times;
        }
        self
    }

    /// Sets the item of a validation error to the name that the application called.
    pub(crate) fn with_called_name(mut self, name: &str) -> Self {
        if let Self::Validation { item, .. } = &mut self {
            *item = name.into();
        }
        self
    }

    /// Returns the server, if one could be determined.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Routing(_) | Self::Validation { .. } => None,
            Self::Unavailable { server, .. }
            | Self::Timeout { server, .. }
            | Self::Protocol { server, .. }
            | Self::Server { server, .. }
            | Self::Withheld { server, .. } => Some(server),
        }
    }
}

/// The kind of a call error, for counting and matching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallErrorKind {
    /// See [`ErrorClass::Routing`].
    Routing,
    /// See [`ErrorClass::ServerUnavailable`].
    Unavailable,
    /// See [`ErrorClass::Validation`].
    Validation,
    /// See [`ErrorClass::Timeout`].
    Timeout,
    /// See [`ErrorClass::Protocol`].
    Protocol,
    /// See [`ErrorClass::Server`].
    Server,
    /// See [`ErrorClass::Withheld`].
    Withheld,
}

impl CallErrorKind {
    /// All kinds, in the order of the variants.
    pub(crate) const ALL: [Self; 7] = [
        Self::Routing,
        Self::Unavailable,
        Self::Validation,
        Self::Timeout,
        Self::Protocol,
        Self::Server,
        Self::Withheld,
    ];

    /// Returns the name in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Routing => "routing",
            Self::Unavailable => "unavailable",
            Self::Validation => "validation",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
            Self::Server => "server_error",
            Self::Withheld => "withheld",
        }
    }
}
