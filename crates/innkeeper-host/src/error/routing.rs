//! The error of a name lookup.

use std::sync::Arc;

use super::display::{JoinedList, Suggestion};

/// The reason why a name could not be routed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutingError {
    /// The name does not start with a known server name and a dot.
    #[error("no server for `{name}`{}", Suggestion(suggestion))]
    UnknownServer {
        /// Called name.
        name: Box<str>,
        /// Similar name, if any.
        suggestion: Option<Box<str>>,
    },
    /// The server has no item of that name.
    #[error("server `{server}` has no {item_kind} `{item}`{}", Suggestion(suggestion))]
    UnknownItem {
        /// Name of the server.
        server: Arc<str>,
        /// `tool` or `prompt`.
        item_kind: &'static str,
        /// Name after the server name.
        item: Box<str>,
        /// Similar name, if any.
        suggestion: Option<Box<str>>,
    },
    /// The server has a tool of that name, but the tool does not match its pin or the guard
    /// withholds its definition.
    #[error("tool `{tool}` of server `{server}` is withheld: {reason}")]
    ToolWithheld {
        /// Name of the server.
        server: Arc<str>,
        /// Name of the tool.
        tool: Box<str>,
        /// Pin mismatch or guard finding, with a hint.
        reason: Box<str>,
    },
    /// The guard withholds the definition of this prompt, resource or template.
    #[error("{item_kind} `{item}` of server `{server}` is withheld: {reason}")]
    ItemWithheld {
        /// Name of the server.
        server: Arc<str>,
        /// `prompt`, `resource` or `resource template`.
        item_kind: &'static str,
        /// Name of the prompt at the server, or the URI.
        item: Box<str>,
        /// Guard finding, with a hint.
        reason: Box<str>,
    },
    /// The server lists an item of that name, but the definition is unusable.
    #[error("{item_kind} `{item}` of server `{server}` is excluded: {reason}")]
    UnusableItem {
        /// Name of the server.
        server: Arc<str>,
        /// `tool` or `prompt`.
        item_kind: &'static str,
        /// Name after the server name.
        item: Box<str>,
        /// What is wrong with the definition.
        reason: Box<str>,
    },
    /// No server has the resource.
    #[error("no server has resource `{uri}`{}", Suggestion(suggestion))]
    UnknownResource {
        /// Requested URI.
        uri: Box<str>,
        /// Similar URI, if any.
        suggestion: Option<Box<str>>,
    },
    /// More than one server has the item.
    #[error("`{name}` exists on several servers: {}", JoinedList(candidates))]
    Ambiguous {
        /// Name or URI.
        name: Box<str>,
        /// Public names of the candidates.
        candidates: Vec<Box<str>>,
    },
}
