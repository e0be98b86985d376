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
    let hash = short_hash(arguments);
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

/// Returns the first 16 hexadecimal digits of the SHA-256 of a text that may contain secrets.
pub(crate) fn short_hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    format!("{digest:.HASH_DIGITS$x}")
}
