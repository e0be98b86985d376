//! `McpClient`: one server as document 001 connects to it.

use innkeeper_agent::{ConnectError, OneServer, Output, RunError, ToolRunner};
use innkeeper_host::{Environment, ShutdownReport};
use serde_json::Value;

/// A server that this program started, by [`OneServer`]. Dropping it and all that use it kills the
/// server.
#[derive(Clone, Debug)]
pub struct McpClient(OneServer);

impl McpClient {
    /// Starts a server and speaks the handshake with it. It inherits a short list of variables of this
    /// process, which are read here.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`].
    pub async fn connect(command: &str, args: impl CommandArguments) -> Result<Self, ConnectError> {
        let args = args.texts();
        OneServer::connect(command, &args, &Environment::of_process()).await.map(Self)
    }

    /// Gives the server's introduction, `null` from one that said nothing. The handshake is done by
    /// [`McpClient::connect`], in the name of this library; this may be called any number of times.
    ///
    /// # Errors
    ///
    /// None; it is there for programs that expect one.
    pub async fn initialize(&self, _name: &str, _version: &str) -> Result<Value, ConnectError> {
        let catalog = self.0.host().catalog();
        let server = catalog.servers().next().and_then(|(_, server)| server.server_info());
        Ok(server.and_then(|info| serde_json::from_str(info.get()).ok()).unwrap_or_default())
    }

    /// Calls a tool by its own name; what it answers is as the server sent it.
    ///
    /// # Errors
    ///
    /// See [`RunError`].
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<Output, RunError> {
        self.0.run(name, arguments).await
    }

    /// The server with its host.
    pub fn server(&self) -> &OneServer {
        &self.0
    }

    /// Stops the server; calls under way fail.
    pub async fn close(&self) -> ShutdownReport {
        self.0.host().shutdown().await
    }
}

/// Arguments of a command, as `&[&str]` or as `&[String]`.
pub trait CommandArguments {
    /// Each argument.
    fn texts(&self) -> Vec<&str>;
}

impl<T: AsRef<str>> CommandArguments for &[T] {
    fn texts(&self) -> Vec<&str> {
        self.iter().map(AsRef::as_ref).collect()
    }
}

impl<T: AsRef<str>> CommandArguments for &Vec<T> {
    fn texts(&self) -> Vec<&str> {
        self.iter().map(AsRef::as_ref).collect()
    }
}

/// Of arrays only those of `&str`, so that `&[]` is one.
impl<const COUNT: usize> CommandArguments for &[&str; COUNT] {
    fn texts(&self) -> Vec<&str> {
        self.to_vec()
    }
}
