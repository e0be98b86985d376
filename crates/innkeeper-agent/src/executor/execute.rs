//! Runs one call of a model.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use serde_json::value::RawValue;

use super::QueuedCall;
use crate::tools::{ToolCallOptions, ToolError, ToolOutput, ToolRunner};

/// Runs a call without changing any of its numbers. A panic of the runner fails this call only,
/// because the runner is code of the application.
pub(super) async fn execute_call(
    runner: &dyn ToolRunner,
    queued: &QueuedCall,
    options: ToolCallOptions,
) -> Result<ToolOutput, ToolError> {
    let arguments =
        RawValue::from_string((*queued.arguments_text).to_owned()).map_err(|source| {
            ToolError::Runner { tool: queued.call.name.clone(), source: source.into() }
        })?;
    let running =
        AssertUnwindSafe(async { runner.call_tool(&queued.call.name, arguments, options).await });
    let result = running.catch_unwind().await;
    result.unwrap_or_else(|_| Err(ToolError::Panicked { tool: queued.call.name.clone() }))
}
