//! Content guard: scans definitions, arguments and results for signs of attacks.
//!
//! A finding is a signal, not a proof. Between an application and its servers, the host cannot tell
//! an instruction from a document about instructions, or an attack path from ordinary work, and an
//! attacker who knows these rules can evade them. Therefore nothing is scanned unless the
//! configuration enables the guard, and the security boundaries are pins, sandbox and approval.
//!
//! Each module covers one family of attacks. The rules come from public descriptions of attacks
//! (the OWASP MCP Top 10, the security chapters of the MCP specification, published incidents), not
//! from the cases of a benchmark.

mod binary_members;
mod broken_words;
mod cloud_metadata;
mod credential_files;
mod decode;
mod finding;
mod fingerprints;
mod injection;
mod item_kind;
mod message_scan;
mod normalize;
mod parameters;
mod sandbox_paths;
mod scanner;
mod secrets;
mod shell;
mod text_nodes;

use innkeeper_config::{GuardMode, GuardModes, ServerConfig};

pub use finding::{Finding, FindingKind};
pub(crate) use fingerprints::SecretFingerprints;
pub(crate) use item_kind::ItemKind;
pub(crate) use scanner::{Scanner, Verdict, scan_definition, scan_instructions};

/// Compiles the patterns that the settings of these servers need, so that no call has to wait for
/// them. Compiles nothing if no guard is enabled.
pub(crate) fn prepare<'c>(servers: impl IntoIterator<Item = &'c ServerConfig>) {
    let on = |mode| mode != GuardMode::Off;
    for GuardModes { definitions, arguments, results } in
        servers.into_iter().map(|server| server.guard)
    {
        if on(definitions) || on(results) {
            injection::prepare();
            broken_words::prepare();
        }
        if on(results) {
            secrets::prepare();
        }
        if on(arguments) {
            shell::prepare();
        }
    }
}

/// Returns what looks like a credential in a text, as written: tokens of known forms, private keys,
/// and random values of secret names. At most 32 for one text.
pub fn find_credentials(text: &str) -> Vec<&str> {
    secrets::find_secrets(text)
}

/// Maximum number of findings for one definition, call or result: a reader needs no more.
pub(crate) const MAX_FINDINGS: usize = 8;

#[cfg(test)]
mod tests;
