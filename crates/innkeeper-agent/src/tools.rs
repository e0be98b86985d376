//! The tools that a model may call, and the interface that runs them.

mod single_server;

use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use innkeeper_host::{CallError, Catalog, Host, ToolResult};
use innkeeper_toolcall::{Tool, Violation};
use serde_json::value::RawValue;

pub use single_server::{ConnectError, SingleServer};

/// Annotations of a tool's behaviour. The server supplies them as hints, not guarantees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// Whether the tool changes nothing.
    pub read_only: bool,
    /// Whether a repeated call with the same arguments has no further effect.
    pub idempotent: bool,
}

/// A tool that a model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct AvailableTool {
    /// The definition for the model.
    pub tool: Tool,
    /// The annotations of the server.
    pub annotations: ToolAnnotations,
}

/// The output of a tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolOutput {
    raw: Box<RawValue>,
    is_error: bool,
}

impl ToolOutput {
    /// Creates an output from a result object. `is_error`: the tool itself reports a failure.
    pub fn new(raw: Box<RawValue>, is_error: bool) -> Self {
        Self { raw, is_error }
    }

    /// Returns the result object, byte for byte.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// Returns whether the tool itself reports a failure, which the model gets as a result.
    pub fn is_error(&self) -> bool {
        self.is_error
    }
}

/// Outputs are equal if their result objects are equal byte for byte.
impl PartialEq for ToolOutput {
    fn eq(&self, other: &Self) -> bool {
        (self.raw.get(), self.is_error) == (other.raw.get(), other.is_error)
    }
}

impl From<ToolResult> for ToolOutput {
    fn from(result: ToolResult) -> Self {
        let is_error = result.is_error();
        Self { raw: result.into_raw(), is_error }
    }
}

/// The reason why a call has no output.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The host could not complete the call.
    #[error(transparent)]
    Host(#[from] CallError),
    /// A tool runner other than a host failed.
    #[error("cannot run tool `{tool}`")]
    Runner {
        /// The name of the tool.
        tool: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The arguments do not match the tool's schema; the call was not sent.
    #[error("invalid arguments for `{tool}`: {}", ViolationList(.violations))]
    InvalidArguments {
        /// The name of the tool.
        tool: String,
        /// The violations of the schema, at most 32.
        violations: Vec<Violation>,
    },
    /// The application has not read enough results; the call was not sent.
    #[error("tool `{tool}` was not run: unread calls and results reached {limit} bytes")]
    BufferFull {
        /// The name of the tool.
        tool: String,
        /// Maximum number of unread bytes.
        limit: usize,
    },
    /// A safety rule or the approver refused the call; the call was not sent.
    #[error("not run: {reason}")]
    Refused {
        /// The name of the tool.
        tool: String,
        /// The reason, which the model gets.
        reason: String,
    },
    /// The code that runs the tool panicked.
    #[error("tool `{tool}` panicked")]
    Panicked {
        /// The name of the tool.
        tool: String,
    },
}

struct ViolationList<'v>(&'v [Violation]);

impl fmt::Display for ViolationList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, violation) in self.0.iter().enumerate() {
            write!(f, "{}{violation}", if at == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

/// A running call. Dropping the future cancels the call.
pub type ToolCallFuture<'r> =
    Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'r>>;

/// Lists tools and runs them.
///
/// An agent and a chat set no timeout for a call: the runner limits the time of each call. A panic of
/// a call becomes [`ToolError::Panicked`].
pub trait ToolRunner: Send + Sync + 'static {
    /// Lists the tools that may be called now. Must not block.
    fn list_tools(&self) -> Vec<AvailableTool>;

    /// Calls the tool with this name, as [`Self::list_tools`] writes the name. The arguments are JSON
    /// text, in which each number has the digits that the model wrote. The future must complete in
    /// bounded time. A host applies the server's `timeout`.
    fn call_tool<'r>(&'r self, name: &'r str, arguments: Box<RawValue>) -> ToolCallFuture<'r>;
}

/// Runs the tools of all servers of the host, by their public names.
impl ToolRunner for Host {
    fn list_tools(&self) -> Vec<AvailableTool> {
        catalog_tools(&self.catalog(), |public, _| public)
    }

    fn call_tool<'r>(&'r self, name: &'r str, arguments: Box<RawValue>) -> ToolCallFuture<'r> {
        Box::pin(async move { Ok(self.call_tool(name, arguments).await?.into()) })
    }
}

/// Returns the tools of a catalog; `named` chooses between the public name and the tool's own name.
fn catalog_tools(
    catalog: &Catalog,
    display_name: for<'n> fn(&'n str, &'n str) -> &'n str,
) -> Vec<AvailableTool> {
    let tools = catalog.tools().map(|tool| {
        let view = &tool.definition.view;
        let description = view.description.as_deref().unwrap_or_default();
        // The catalog contains only schemas that are objects.
        let schema = serde_json::from_str(view.input_schema.get()).unwrap_or_default();
        let annotations = ToolAnnotations {
            read_only: view.annotations.read_only_hint == Some(true),
            idempotent: view.annotations.idempotent_hint == Some(true),
        };
        let name = display_name(tool.public_name, &view.name);
        AvailableTool { tool: Tool::new(name, description, schema), annotations }
    });
    tools.collect()
}
