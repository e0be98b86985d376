//! A single server whose tools keep their own names.

use innkeeper_host::{
    Arguments, CallError, Config, ConfigError, Environment, Host, StartError, ToolResult,
};
use serde_json::json;
use serde_json::value::RawValue;

use super::{
    AvailableTool, RefreshFuture, ToolCallFuture, ToolCallOptions, ToolRunner, UnavailableTool,
    call_options, catalog_tools,
};

/// The name of the server in errors and logs.
const SERVER_NAME: &str = "server";

/// A host with one server. Its tools have their own names, without the server's name.
#[derive(Clone, Debug)]
pub struct SingleServer(Host);

/// The reason why the server did not become ready.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The command is not valid.
    #[error("invalid server command `{command}`")]
    Command {
        /// The command as given.
        command: String,
        /// The problems of the command.
        source: ConfigError,
    },
    /// The server did not become ready.
    #[error("server `{command}` did not start")]
    Start {
        /// The command as given.
        command: String,
        /// The cause.
        source: StartError,
    },
}

impl SingleServer {
    /// Starts a program with unmodified arguments and performs the MCP handshake over stdio. The
    /// server gets the same short list of variables of `environment` as every stdio server. Dropping
    /// the future kills the program.
    ///
    /// # Errors
    ///
    /// The command is invalid, or the server is not ready after 30 s.
    pub async fn connect(
        command: &str,
        args: &[&str],
        environment: &Environment,
    ) -> Result<Self, ConnectError> {
        let args: Vec<String> = args.iter().map(|arg| literal(arg)).collect();
        let entry = json!({"type": "stdio", "command": literal(command), "args": args});
        let file = json!({"servers": {SERVER_NAME: entry}, "host": {"allowBareNames": true}});
        let here = environment.current_dir().unwrap_or(std::path::Path::new("."));
        let config = Config::from_value(&file, "the command", here, environment)
            .map_err(|source| ConnectError::Command { command: command.to_owned(), source })?;
        let host = Host::start(config)
            .await
            .map_err(|source| ConnectError::Start { command: command.to_owned(), source })?;
        Ok(Self(host))
    }

    /// Returns the host, for its status, events and shutdown.
    pub fn host(&self) -> &Host {
        &self.0
    }

    /// Calls a tool by the server's own name. The limits are the limits of [`Host::call_tool`].
    ///
    /// # Errors
    ///
    /// See [`CallError`]. A failure that the tool itself reports is a result.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: impl Into<Arguments>,
    ) -> Result<ToolResult, CallError> {
        self.0.call_tool(&public_name(name), arguments).await
    }
}

/// Returns the name of a tool in the host. A tool's own name may equal the public name of another
/// tool, so every name gets the server's name as prefix.
fn public_name(own_name: &str) -> String {
    format!("{SERVER_NAME}.{own_name}")
}

impl ToolRunner for SingleServer {
    fn list_tools(&self) -> Vec<AvailableTool> {
        catalog_tools(&self.0.catalog(), |_, own_name| own_name)
    }

    fn unavailable_tools(&self) -> Vec<UnavailableTool> {
        let mut tools = self.0.unavailable_tools();
        let prefix = public_name("");
        for tool in &mut tools {
            tool.name = tool.name.strip_prefix(&prefix).unwrap_or(&tool.name).to_owned();
        }
        tools
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        options: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let name = public_name(name);
        let options = call_options(options);
        Box::pin(async move { Ok(self.0.call_tool_with(&name, arguments, options).await?.into()) })
    }

    fn finish_refresh(&self) -> RefreshFuture<'_> {
        ToolRunner::finish_refresh(&self.0)
    }
}

/// Escapes what a configuration would expand.
fn literal(text: &str) -> String {
    text.replace("${", "$${")
}
