//! Who runs the tools that a model may call, and the host as the one who does.

mod exact;
mod one_server;
mod perform;

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use innkeeper_host::{CallError, Catalog, Host, ToolResult, split_name};
use innkeeper_toolcall::{Tool, Violation};
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use exact::exact;
pub use one_server::{ConnectError, OneServer};
pub(crate) use perform::perform;

/// What a server says of a tool's behaviour: hints, no promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: bool,
}

/// A tool that may be called.
#[derive(Clone, Debug, PartialEq)]
pub struct Offered {
    /// What the model is told.
    pub tool: Tool,
    /// What it does to the world.
    pub hints: Hints,
}

/// What a tool answered.
#[derive(Clone, Debug)]
pub struct Output {
    raw: Box<RawValue>,
    is_error: bool,
}

impl Output {
    /// An answer from its result object; `is_error` where the tool itself reports a failure.
    pub fn new(raw: Box<RawValue>, is_error: bool) -> Self {
        Self { raw, is_error }
    }

    /// The result object, byte for byte.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// Whether the tool itself reports a failure: for the model to read.
    pub fn is_error(&self) -> bool {
        self.is_error
    }
}

impl From<ToolResult> for Output {
    fn from(result: ToolResult) -> Self {
        let is_error = result.is_error();
        Self { raw: result.into_raw(), is_error }
    }
}

/// Why a call has no answer of its tool.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The host could not have it answered.
    #[error(transparent)]
    Host(#[from] CallError),
    /// Whoever runs the tools in place of a host could not.
    #[error("tool `{tool}` could not be run")]
    Runner {
        /// The tool.
        tool: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The arguments do not fit the tool's schema; nothing was sent.
    #[error("arguments of `{tool}` do not fit: {}", Listed(.violations))]
    Unfit {
        /// The tool.
        tool: String,
        /// Every part that does not fit, 32 at most.
        violations: Vec<Violation>,
    },
    /// A number of the arguments would be another one by the time it is sent; nothing was sent.
    #[error("arguments of `{tool}` have the number `{number}`, which does not fit into 64 bits")]
    Number {
        /// The tool.
        tool: String,
        /// The number; the first 64 characters of it.
        number: String,
    },
    /// So much waits to be taken by the application that nothing more is run; nothing was sent.
    #[error("tool `{tool}` was not run: {limit} bytes of calls and results wait to be taken")]
    Untaken {
        /// The tool.
        tool: String,
        /// The most that may wait, in bytes.
        limit: usize,
    },
    /// The code that runs the tool panicked.
    #[error("running tool `{tool}` panicked")]
    Panicked {
        /// The tool.
        tool: String,
    },
}

struct Listed<'v>(&'v [Violation]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, violation) in self.0.iter().enumerate() {
            write!(f, "{}{violation}", if at == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

/// A call on its way. Dropping it cancels the call.
pub type Running<'r> = Pin<Box<dyn Future<Output = Result<Output, RunError>> + Send + 'r>>;

/// Knows tools and runs them.
pub trait ToolRunner: Send + Sync + 'static {
    /// The tools that may be called now. Waits for nothing.
    fn offered(&self) -> Vec<Offered>;

    /// Calls the tool that is offered by this name; ends in bounded time.
    fn run<'r>(&'r self, name: &'r str, arguments: Value) -> Running<'r>;
}

/// Every server of the host, by public names.
impl ToolRunner for Host {
    fn offered(&self) -> Vec<Offered> {
        offered(&self.catalog(), |public, _| public)
    }

    fn run<'r>(&'r self, name: &'r str, arguments: Value) -> Running<'r> {
        Box::pin(async move { Ok(self.call_tool(name, arguments).await?.into()) })
    }
}

/// The tools of a catalog, each called what `named` makes of its public and its own name.
fn offered(catalog: &Catalog, named: for<'n> fn(&'n str, &'n str) -> &'n str) -> Vec<Offered> {
    let mut known = HashMap::new();
    for (server, shown) in catalog.servers() {
        for tool in shown.offer().into_iter().flat_map(|offer| &offer.tools) {
            known.insert((server, tool.view.name.as_str()), &tool.view);
        }
    }
    let found = catalog.tool_names().filter_map(|public| {
        let (server, own) = split_name(public, |name| catalog.server(name).is_some())?;
        let view = known.get(&(server, own))?;
        let description = view.description.as_deref().unwrap_or_default();
        // What is offered was read as an object when the catalog was built.
        let schema = serde_json::from_str(view.input_schema.get()).unwrap_or_default();
        let hints = Hints {
            read_only: view.annotations.read_only_hint == Some(true),
            idempotent: view.annotations.idempotent_hint == Some(true),
        };
        Some(Offered { tool: Tool::new(named(public, own), description, schema), hints })
    });
    found.collect()
}
