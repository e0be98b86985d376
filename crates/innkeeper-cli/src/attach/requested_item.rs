//! What a command needs of a server.

use serde::{Deserialize, Serialize};

/// The item that a command is for.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RequestedItem {
    /// A tool by its own name.
    Tool(String),
    /// A prompt by its own name.
    Prompt(String),
    /// A resource: servers may have resources that they do not list.
    Resource,
    /// The process of the server, to restart it.
    Process,
}
