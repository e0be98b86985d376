//! The client of one MCP server, for programs that write `mcp_client::McpClient` or
//! `gamecode_mcp_client::McpClient`.
//!
//! Such a program renames this package in its manifest and keeps its source code:
//!
//! ```toml
//! [dependencies]
//! mcp_client = { package = "innkeeper-mcp-client", path = "…/crates/innkeeper-mcp-client" }
//! ```
//!
//! [`McpClient`] is the type of [`innkeeper::compat`]. This package exists because Cargo accepts
//! only one name for each package in a manifest, and the program already gives `innkeeper` the name
//! of its host library.
//!
//! ```no_run
//! # use innkeeper_mcp_client as mcp_client;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = mcp_client::McpClient::connect("path/to/mcp-server", &[]).await?;
//! let output = client.call_tool("echo", serde_json::json!({"message": "hello"})).await?;
//! println!("{}", output.raw());
//! client.close().await;
//! # Ok(())
//! # }
//! ```

/// The report of [`McpClient::close`].
pub use innkeeper::ShutdownReport;
pub use innkeeper::compat::{CommandArguments, McpClient};
/// The error of [`McpClient::connect`].
pub use innkeeper::tools::ConnectError;
/// The error and the output of [`McpClient::call_tool`].
pub use innkeeper::tools::{ToolError, ToolOutput};
