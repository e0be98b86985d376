//! The audit event of a tool call that was run or refused.

use std::time::Duration;

use innkeeper_host::audit::TARGET;
use sha2::{Digest, Sha256};
use tracing::info;

/// Number of hex digits of the hash, enough to recognize equal arguments.
const HASH_DIGITS: usize = 16;

/// Emits the audit event of one call. The arguments may contain secrets, so the event has their
/// hash only.
pub(crate) fn emit_tool_executed(tool: &str, arguments: &str, outcome: &str, elapsed: Duration) {
    let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let digest = Sha256::digest(arguments.as_bytes());
    let hash = format!("{digest:.HASH_DIGITS$x}");
    info!(
        target: TARGET,
        security = true,
        audit = "tool_executed",
        tool,
        arguments_sha256 = hash,
        outcome,
        milliseconds,
        "a model's call"
    );
}
