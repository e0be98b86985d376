//! The tools that a model may call, and the interface that runs them.

mod hidden_servers;
mod offered;
mod resource_tools;
mod single_server;
mod unavailable;

use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_host::{CallError, CallOptions, Catalog, Host, Progress, ToolResult};
use innkeeper_protocol::view;
use innkeeper_toolcall::Violation;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

pub use hidden_servers::HiddenServers;
pub use innkeeper_toolcall::Tool;
pub use offered::OfferedTools;
pub use resource_tools::{READ_RESOURCE_TOOL, ResourceTools};
pub use single_server::{ConnectError, SingleServer};
pub use unavailable::UnavailableTool;
pub(crate) use unavailable::describe_losses;

/// Annotations of a tool's behaviour. The server supplies them as hints, not guarantees. An
/// annotation that the server does not supply has the default of the MCP specification (schema of
/// `ToolAnnotations`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// Whether the tool changes nothing. Default: no.
    pub read_only: bool,
    /// Whether a repeated call with the same arguments has no further effect. Default: no.
    pub idempotent: bool,
    /// Whether the tool may delete or overwrite something. Default: yes.
    pub destructive: bool,
    /// Whether the tool reaches systems outside of its server, such as the web. Default: yes.
    pub open_world: bool,
}

impl Default for ToolAnnotations {
    fn default() -> Self {
        Self { read_only: false, idempotent: false, destructive: true, open_world: true }
    }
}

impl From<&view::ToolAnnotations> for ToolAnnotations {
    fn from(hints: &view::ToolAnnotations) -> Self {
        let default = Self::default();
        Self {
            read_only: hints.read_only_hint.unwrap_or(default.read_only),
            idempotent: hints.idempotent_hint.unwrap_or(default.idempotent),
            destructive: hints.destructive_hint.unwrap_or(default.destructive),
            open_world: hints.open_world_hint.unwrap_or(default.open_world),
        }
    }
}

/// A tool that a model may call.
#[derive(Clone, Debug)]
pub struct AvailableTool {
    /// The definition for the model.
    pub tool: Tool,
    /// The annotations of the server.
    pub annotations: ToolAnnotations,
    /// The definition as the server sent it, byte for byte; `None` for a tool without an MCP server.
    /// A host and its list of tools share the definition.
    pub definition: Option<Arc<RawValue>>,
    /// Why models do not get the tool, and calls of the tool are refused; `None` for a tool that
    /// models may call.
    pub refusal: Option<Arc<str>>,
}

impl AvailableTool {
    /// Creates a tool without an MCP definition.
    pub fn new(tool: Tool, annotations: ToolAnnotations) -> Self {
        Self { tool, annotations, definition: None, refusal: None }
    }
}

/// Tools are equal if the models get the same tool or refusal, and the definitions are equal byte for byte.
impl PartialEq for AvailableTool {
    fn eq(&self, other: &Self) -> bool {
        let [ours, theirs] =
            [self, other].map(|tool| tool.definition.as_deref().map(RawValue::get));
        (self.annotations, &self.tool, ours, &self.refusal)
            == (other.annotations, &other.tool, theirs, &other.refusal)
    }
}

/// Options of one call.
#[derive(Clone, Debug, Default)]
pub struct ToolCallOptions {
    /// Maximum time without a response or progress. Default: the runner's own limit.
    pub timeout: Option<Duration>,
    /// The channel for progress notifications, in the order of the server. A full channel loses
    /// notifications. Default: none; the runner then does no work for progress.
    pub progress: Option<mpsc::Sender<Progress>>,
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
    /// The failure of a recorded call.
    #[error("{message}")]
    Recorded {
        /// The class of the error, as [`Self::class`] returns it.
        class: String,
        /// The message of the error.
        message: String,
        /// Whether the tool may have run.
        may_have_run: bool,
    },
    /// The code that runs the tool panicked.
    #[error("tool `{tool}` panicked")]
    Panicked {
        /// The name of the tool.
        tool: String,
    },
}

impl ToolError {
    /// Returns the class of the error: that of the host's error, or the reason why nothing was called.
    pub fn class(&self) -> &str {
        match self {
            Self::Host(error) => error.kind().as_str(),
            Self::Runner { .. } => "runner",
            Self::InvalidArguments { .. } => "invalid_arguments",
            Self::BufferFull { .. } => "buffer_full",
            Self::Refused { .. } => "refused",
            Self::Recorded { class, .. } => class,
            Self::Panicked { .. } => "panicked",
        }
    }

    /// Returns whether nothing shows if the tool ran.
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::Host(CallError::Unavailable { may_have_run, .. })
            | Self::Recorded { may_have_run, .. } => *may_have_run,
            Self::Host(CallError::Timeout { .. }) => true,
            Self::Host(_)
            | Self::Runner { .. }
            | Self::InvalidArguments { .. }
            | Self::BufferFull { .. }
            | Self::Refused { .. }
            | Self::Panicked { .. } => false,
        }
    }
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

/// The wait of [`ToolRunner::finish_refresh`].
pub type RefreshFuture<'r> = Pin<Box<dyn Future<Output = ()> + Send + 'r>>;

/// Lists tools and runs them.
///
/// An agent with [`timeout`](crate::agent::CallSettings::timeout) passes this limit with
/// each call; otherwise the runner limits the time of each call. A panic of a call becomes
/// [`ToolError::Panicked`].
pub trait ToolRunner: Send + Sync + 'static {
    /// Lists the tools that may be called now. Must not block.
    fn list_tools(&self) -> Vec<AvailableTool>;

    /// Lists the tools that were callable and are not now, because their server became unavailable.
    /// The model of a run is told when it loses tools. Must not block. Default: none.
    fn unavailable_tools(&self) -> Vec<UnavailableTool> {
        Vec::new()
    }

    /// Calls the tool with this name, as [`Self::list_tools`] writes the name. The arguments are JSON
    /// text, in which each number has the digits that the model wrote. The future must complete in
    /// bounded time. A host applies the server's `timeout` without a timeout in the options.
    ///
    /// A runner must not repeat the call: the model decides about a failed call, and the limits of a
    /// run count each call once. A host therefore does not apply its `retry` setting.
    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        options: ToolCallOptions,
    ) -> ToolCallFuture<'r>;

    /// Waits until [`Self::list_tools`] lists the tools that earlier calls added or changed. An agent
    /// waits before the request that follows the calls. The future must complete in bounded time.
    /// Default: completes at once.
    fn finish_refresh(&self) -> RefreshFuture<'_> {
        Box::pin(std::future::ready(()))
    }
}

/// Runs the tools of all servers of the host, by their public names.
impl ToolRunner for Host {
    fn list_tools(&self) -> Vec<AvailableTool> {
        catalog_tools(&self.catalog(), |public, _| public)
    }

    fn unavailable_tools(&self) -> Vec<UnavailableTool> {
        unavailable::unavailable_tools(&self.catalog())
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        options: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let options = call_options(options);
        Box::pin(async move { Ok(self.call_tool_with(name, arguments, options).await?.into()) })
    }

    fn finish_refresh(&self) -> RefreshFuture<'_> {
        Box::pin(self.finish_tool_refresh())
    }
}

/// Returns the options of the host for a call of a model, without retries of the host (C95).
fn call_options(options: ToolCallOptions) -> CallOptions {
    let ToolCallOptions { timeout, progress } = options;
    CallOptions { timeout, progress, retries: Some(0), ..CallOptions::default() }
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
        let name = display_name(tool.public_name, &view.name);
        AvailableTool {
            tool: Tool::new(name, description, schema),
            annotations: (&view.annotations).into(),
            definition: Some(tool.definition.raw.clone()),
            refusal: None,
        }
    });
    tools.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hint_of_a_server_replaces_the_default_of_the_specification() {
        let hints = |hint| view::ToolAnnotations {
            title: None,
            read_only_hint: hint,
            destructive_hint: hint,
            idempotent_hint: hint,
            open_world_hint: hint,
        };
        for hint in [true, false] {
            let expected = ToolAnnotations {
                read_only: hint,
                idempotent: hint,
                destructive: hint,
                open_world: hint,
            };
            assert_eq!(ToolAnnotations::from(&hints(Some(hint))), expected);
        }
        assert_eq!(ToolAnnotations::from(&hints(None)), ToolAnnotations::default());
    }
}
