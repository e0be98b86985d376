//! `McpClient`: a connection to one server, named as in document 001.

use innkeeper_agent::{ConnectError, SingleServer, ToolError, ToolOutput};
use innkeeper_host::{Environment, ShutdownReport};
use serde_json::Value;

/// A client of one server that this process starts, based on [`SingleServer`]. Dropping the client
/// and everything that uses the client kills the server.
#[derive(Clone, Debug)]
pub struct McpClient(SingleServer);

impl McpClient {
    /// Starts a server and performs the handshake. The server inherits a fixed list of environment
    /// variables, which this function reads from the process environment.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`].
    pub async fn connect(command: &str, args: impl CommandArguments) -> Result<Self, ConnectError> {
        let args = args.to_strings();
        SingleServer::connect(command, &args, &Environment::from_process()).await.map(Self)
    }

    /// Returns the server's `serverInfo`, or `null` if the server sent none. [`McpClient::connect`]
    /// already performed the handshake with this library's name; repeated calls are allowed.
    ///
    /// # Errors
    ///
    /// None. The return type exists for programs that expect a `Result`.
    pub async fn initialize(&self, _name: &str, _version: &str) -> Result<Value, ConnectError> {
        let catalog = self.0.host().catalog();
        let server = catalog.servers().next().and_then(|(_, server)| server.server_info());
        Ok(server.and_then(|info| serde_json::from_str(info.get()).ok()).unwrap_or_default())
    }

    /// Calls a tool by the name that the server uses. The output is the server's result, unchanged.
    ///
    /// # Errors
    ///
    /// See [`ToolError`].
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        Ok(self.0.call_tool(name, arguments).await?.into())
    }

    /// Returns the server together with its host.
    pub fn server(&self) -> &SingleServer {
        &self.0
    }

    /// Stops the server. Running calls fail.
    pub async fn close(&self) -> ShutdownReport {
        self.0.host().shutdown().await
    }
}

/// Arguments of a command: `&[&str]` or `&[String]`.
pub trait CommandArguments {
    /// Returns the arguments as string slices.
    fn to_strings(&self) -> Vec<&str>;
}

impl<T: AsRef<str>> CommandArguments for &[T] {
    fn to_strings(&self) -> Vec<&str> {
        self.iter().map(AsRef::as_ref).collect()
    }
}

impl<T: AsRef<str>> CommandArguments for &Vec<T> {
    fn to_strings(&self) -> Vec<&str> {
        self.iter().map(AsRef::as_ref).collect()
    }
}

/// Only arrays of `&str` are supported, so that the type of `&[]` can be inferred.
impl<const COUNT: usize> CommandArguments for &[&str; COUNT] {
    fn to_strings(&self) -> Vec<&str> {
        self.to_vec()
    }
}
