//! One call, run for a model that made it.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use innkeeper_toolcall::Call;

use super::{Output, RunError, ToolRunner, exact};

/// Runs the call as it was made: no number in it becomes another one. A runner is somebody else's
/// code: its panic is one call's failure.
pub(crate) async fn perform(runner: &dyn ToolRunner, call: &Call) -> Result<Output, RunError> {
    let tool = || call.name.clone();
    let arguments =
        exact(&call.arguments).map_err(|number| RunError::Number { tool: tool(), number })?;
    let running = AssertUnwindSafe(async { runner.run(&call.name, arguments).await });
    let result = running.catch_unwind().await;
    result.unwrap_or_else(|_| Err(RunError::Panicked { tool: tool() }))
}
