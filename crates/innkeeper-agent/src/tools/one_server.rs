//! A single server whose tools keep their own names.

use innkeeper_host::{Config, ConfigError, Environment, Host, StartError};
use serde_json::{Value, json};

use super::{Offered, Running, ToolRunner, offered};

/// What the server is called in errors and logs.
const NAME: &str = "server";

/// A host of one server. Its tools are called by their own names, without the server's.
#[derive(Clone, Debug)]
pub struct OneServer(Host);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The command cannot be used.
    #[error("`{command}` cannot be used as the command of a server")]
    Command {
        /// The command as it was given.
        command: String,
        /// Every problem.
        source: ConfigError,
    },
    /// It did not become ready.
    #[error("the server `{command}` did not start")]
    Start {
        /// The command as it was given.
        command: String,
        /// Why.
        source: StartError,
    },
}

impl OneServer {
    /// Starts a program with these arguments, as they are, and speaks the handshake with it over its
    /// standard input and output. It gets the short list of variables of `environment` that every
    /// server gets.
    ///
    /// # Errors
    ///
    /// A command that cannot be used, or a server that does not become ready in 30 s.
    pub async fn connect(
        command: &str,
        args: &[&str],
        environment: &Environment,
    ) -> Result<Self, ConnectError> {
        let literal = |text: &str| text.replace("${", "$${");
        let args: Vec<String> = args.iter().map(|arg| literal(arg)).collect();
        let entry = json!({"type": "stdio", "command": literal(command), "args": args});
        let file = json!({"servers": {NAME: entry}, "host": {"allowBareNames": true}});
        let here = environment.current_dir().unwrap_or(std::path::Path::new("."));
        let told = || command.to_owned();
        let config = Config::from_value(&file, "the command", here, environment)
            .map_err(|source| ConnectError::Command { command: told(), source })?;
        let host = Host::start(config)
            .await
            .map_err(|source| ConnectError::Start { command: told(), source })?;
        Ok(Self(host))
    }

    /// The host around it: its status, its events, its shutdown.
    pub fn host(&self) -> &Host {
        &self.0
    }
}

impl ToolRunner for OneServer {
    fn offered(&self) -> Vec<Offered> {
        offered(&self.0.catalog(), |_, own| own)
    }

    fn run<'r>(&'r self, name: &'r str, arguments: Value) -> Running<'r> {
        // A tool may be called as another one is in public: the server's name goes in front of both.
        Box::pin(
            async move { Ok(self.0.call_tool(&format!("{NAME}.{name}"), arguments).await?.into()) },
        )
    }
}
