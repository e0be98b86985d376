//! Why a call, prompt or resource request has no result.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::ErrorObject;
use serde::Serialize;

use super::words::{Cut, Listed, Seconds, Tries};
use super::{ArgumentProblem, ErrorClass, Lost, ProtocolFault, RoutingError};
use crate::guard::Finding;

/// Why a call, prompt or resource request has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The name leads to no server, tool, prompt or resource, or to more than one.
    #[error(transparent)]
    Routing(#[from] RoutingError),
    /// The arguments do not fit what the server declared, or the guard refuses them; nothing was sent.
    #[error("arguments of `{item}` do not fit: {}", Listed(problems))]
    Validation {
        /// The tool or prompt as it was called.
        item: Box<str>,
        /// Everything that does not fit.
        problems: Vec<ArgumentProblem>,
    },
    /// The server is not there, or went away before it answered.
    #[error("server `{server}` is unavailable: {reason}{}", Tries(*attempts))]
    Unavailable {
        /// The server.
        server: Arc<str>,
        /// Why it cannot answer.
        reason: Lost,
        /// Whether the request may have reached the server before it went away.
        may_have_run: bool,
        /// How often it was tried to send it; 0 where the server was known to take none.
        attempts: u32,
    },
    /// No answer within the time allowed; the server was sent a cancellation.
    #[error("server `{server}` did not answer `{item}` within {}", Seconds(*after))]
    Timeout {
        /// The server.
        server: Arc<str>,
        /// The tool, prompt, URI or method.
        item: Box<str>,
        /// The time that was allowed.
        after: Duration,
    },
    /// The answer breaks JSON-RPC or MCP.
    #[error("server `{server}` broke the protocol answering `{item}`")]
    Protocol {
        /// The server.
        server: Arc<str>,
        /// The tool, prompt, URI or method.
        item: Box<str>,
        /// What is wrong with the answer.
        #[source]
        source: ProtocolFault,
    },
    /// The server answered with a JSON-RPC error.
    #[error("server `{server}` refused `{item}`: {} (code {})", Cut(&error.message), error.code)]
    Server {
        /// The server.
        server: Arc<str>,
        /// The tool, prompt, URI or method.
        item: Box<str>,
        /// The error object as the server sent it.
        error: ErrorObject,
    },
    /// The call ran, and the guard keeps its answer back; to send it again would run it again.
    #[error(
        "the answer of `{item}` of server `{server}` is withheld, the call has run: {}; \
         `guard.results` as `flag` lets such answers pass",
        Listed(findings)
    )]
    Withheld {
        /// The server.
        server: Arc<str>,
        /// The tool.
        item: Box<str>,
        /// What was found, at least one.
        findings: Vec<Finding>,
    },
}

impl CallError {
    /// The class for counting and matching.
    pub fn kind(&self) -> CallKind {
        match self {
            Self::Routing(_) => CallKind::Routing,
            Self::Validation { .. } => CallKind::Validation,
            Self::Unavailable { .. } => CallKind::Unavailable,
            Self::Timeout { .. } => CallKind::Timeout,
            Self::Protocol { .. } => CallKind::Protocol,
            Self::Server { .. } => CallKind::Server,
            Self::Withheld { .. } => CallKind::Withheld,
        }
    }

    /// The class shared with start and configuration errors.
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

    /// The same with the number of attempts it took.
    pub(crate) fn tried(mut self, times: u32) -> Self {
        if let Self::Unavailable { attempts, .. } = &mut self {
            *attempts = times;
        }
        self
    }

    /// The server concerned, if one could be determined.
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

/// The class of a failed call, for counting and matching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
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

impl CallKind {
    /// Every kind, in the order of the variants.
    pub(crate) const ALL: [Self; 7] = [
        Self::Routing,
        Self::Unavailable,
        Self::Validation,
        Self::Timeout,
        Self::Protocol,
        Self::Server,
        Self::Withheld,
    ];

    /// The word used in logs and metrics.
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
