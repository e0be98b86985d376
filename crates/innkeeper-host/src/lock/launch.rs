//! The pinned launch of a server, as written in the configuration.

use innkeeper_config::TransportConfig;
use serde::{Deserialize, Serialize};

use super::package::{Package, packages_for_transport};

/// The launch or address of a server, with variables unexpanded and secrets masked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PinnedLaunch {
    /// A local program.
    Program {
        /// Program.
        command: String,
        /// Arguments.
        args: Vec<String>,
        /// Working directory, if configured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
    },
    /// The URL of a remote server.
    Address {
        /// URL.
        url: String,
    },
    /// A server in the process of the application.
    Application {
        /// The type of the server.
        #[serde(rename = "type")]
        transport: InProcessType,
    },
}

/// The type of a server in the process of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InProcessType {
    /// `in-process`.
    #[serde(rename = "in-process")]
    InProcess,
}

pub(super) fn from_transport(transport: &TransportConfig) -> (PinnedLaunch, Option<Package>) {
    let launch = match transport {
        TransportConfig::Stdio { command, args, cwd, .. } => {
            let command = command.as_written().to_owned();
            let args = args.iter().map(|arg| arg.as_written().to_owned()).collect();
            let cwd = cwd.as_ref().map(|cwd| cwd.as_written().to_owned());
            PinnedLaunch::Program { command, args, cwd }
        }
        TransportConfig::Http { url, .. }
        | TransportConfig::Sse { url, .. }
        | TransportConfig::WebSocket { url, .. } => {
            PinnedLaunch::Address { url: url.as_written().to_owned() }
        }
        TransportConfig::InProcess => {
            PinnedLaunch::Application { transport: InProcessType::InProcess }
        }
    };
    (launch, packages_for_transport(transport).packages.into_iter().next())
}
