//! How a server is started or reached, in the words of the configuration.

use serde::{Deserialize, Serialize};

use super::package::{Package, of_transport};
use crate::config::TransportConfig;

/// How a server is started or reached. Variables stand unreplaced, secrets are masked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Launch {
    /// A program of this machine.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Where it runs, if that is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
    },
    /// An address.
    Address {
        /// The address.
        url: String,
    },
}

/// What a configuration starts or reaches, and from which package it comes.
pub(super) fn of(transport: &TransportConfig) -> (Launch, Option<Package>) {
    let launch = match transport {
        TransportConfig::Stdio { command, args, cwd, .. } => {
            let command = command.as_written().to_owned();
            let args = args.iter().map(|arg| arg.as_written().to_owned()).collect();
            let cwd = cwd.as_ref().map(|cwd| cwd.as_written().to_owned());
            Launch::Program { command, args, cwd }
        }
        TransportConfig::Http { url, .. }
        | TransportConfig::Sse { url, .. }
        | TransportConfig::WebSocket { url, .. } => {
            Launch::Address { url: url.as_written().to_owned() }
        }
    };
    (launch, of_transport(transport).packages.into_iter().next())
}
