//! One line of the log for every call that was run or refused.

use innkeeper_host::audit::TARGET;
use sha2::{Digest, Sha256};
use tracing::info;

/// How many digits of the hash are told: enough to find the same arguments again.
const DIGITS: usize = 16;

/// Tells of one call. The arguments themselves may be secret: their hash is told.
pub(crate) fn executed(tool: &str, arguments: &str, outcome: &str, milliseconds: u64) {
    let digest = Sha256::digest(arguments.as_bytes());
    let hash: String = digest.iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect();
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
