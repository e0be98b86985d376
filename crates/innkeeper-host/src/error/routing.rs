//! Why a name leads to no server, tool, prompt or resource.

use std::sync::Arc;

use super::words::{Listed, Meant};

/// Why a name could not be routed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutingError {
    /// The name has no known server before a dot.
    #[error("`{name}` names no known server{}", Meant(suggestion))]
    UnknownServer {
        /// The name as it was called.
        name: Box<str>,
        /// What may have been meant.
        suggestion: Option<Box<str>>,
    },
    /// The server is known, but has nothing of that name.
    #[error("server `{server}` has no {what} `{item}`{}", Meant(suggestion))]
    UnknownItem {
        /// The server.
        server: Arc<str>,
        /// `tool` or `prompt`.
        what: &'static str,
        /// The name behind the server's.
        item: Box<str>,
        /// What may have been meant.
        suggestion: Option<Box<str>>,
    },
    /// The server has a tool of that name, and it is not the one that was pinned, or the guard refuses
    /// its definition.
    #[error("tool `{tool}` of server `{server}` is refused: {reason}")]
    ToolChanged {
        /// The server.
        server: Arc<str>,
        /// The tool.
        tool: Box<str>,
        /// Whether it changed or is new or what was found, and what to type.
        reason: Box<str>,
    },
    /// The server has such a prompt, resource or template, and the guard refuses its definition.
    #[error("{what} `{item}` of server `{server}` is refused: {reason}")]
    ItemRefused {
        /// The server.
        server: Arc<str>,
        /// `prompt`, `resource` or `resource template`.
        what: &'static str,
        /// The name of the prompt at the server, or the URI.
        item: Box<str>,
        /// What was found, and what to type.
        reason: Box<str>,
    },
    /// No server offers the resource.
    #[error("no server offers the resource `{uri}`{}", Meant(suggestion))]
    UnknownResource {
        /// The URI as it was asked for.
        uri: Box<str>,
        /// What may have been meant.
        suggestion: Option<Box<str>>,
    },
    /// More than one server could be meant.
    #[error("`{name}` is offered by several servers: {}", Listed(candidates))]
    Ambiguous {
        /// The name or URI.
        name: Box<str>,
        /// Who offers it.
        candidates: Vec<Box<str>>,
    },
}
