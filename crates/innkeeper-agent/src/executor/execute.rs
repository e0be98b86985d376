//! Runs one call of a model.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use innkeeper_toolcall::ResolvedCall;

use crate::tools::{ToolError, ToolOutput, ToolRunner, to_lossless};

/// Runs a call without changing any of its numbers. A panic of the runner fails this call only,
/// because the runner is code of the application.
pub(super) async fn execute_call(
    runner: &dyn ToolRunner,
    call: &ResolvedCall,
) -> Result<ToolOutput, ToolError> {
    let tool = || call.name.clone();
    let arguments = to_lossless(&call.arguments)
        .map_err(|number| ToolError::NumberOutOfRange { tool: tool(), number })?;
    let running = AssertUnwindSafe(async { runner.call_tool(&call.name, arguments).await });
    let result = running.catch_unwind().await;
    result.unwrap_or_else(|_| Err(ToolError::Panicked { tool: tool() }))
}
