//! Looks for what attacks look like in definitions, arguments and results: a signal, not a proof.
//!
//! Whether a sentence is an order or a document about orders, and whether a path is an attack or the
//! day's work, nobody can tell for certain from between an application and its servers; who reads
//! these rules can write around them. Therefore nothing is looked at unless the configuration says
//! so, and the boundary stays where an owner draws it: pins, sandbox, approval.
//!
//! Each family of attacks is a file. What they look for comes from public descriptions of attacks
//! (the OWASP MCP Top 10, the security chapters of the MCP specification, published incidents), not
//! from the cases of a bench.

mod attention;
mod carried;
mod files;
mod finding;
mod folders;
mod metadata;
mod of;
mod orders;
mod parameters;
mod pieces;
mod secrets;
mod shell;
mod unwrap;

use crate::config::{GuardMode, GuardModes, ServerConfig};

pub(crate) use attention::{Attention, Told, definition, instructions};
pub(crate) use carried::Memory;
pub use finding::{Finding, FindingKind};
pub(crate) use of::Of;

/// Makes ready what is looked for by the settings of these servers, so that no call has to wait for
/// it; nothing where nothing is looked at.
pub(crate) fn prepare<'c>(servers: impl IntoIterator<Item = &'c ServerConfig>) {
    let on = |mode| mode != GuardMode::Off;
    for GuardModes { definitions, arguments, results } in
        servers.into_iter().map(|server| server.guard)
    {
        if on(definitions) || on(results) {
            orders::prepare();
        }
        if on(results) {
            secrets::prepare();
        }
        if on(arguments) {
            shell::prepare();
        }
    }
}

/// Findings that are told of one definition, call or result; who reads so many needs no more.
pub(crate) const FINDINGS: usize = 8;

#[cfg(test)]
mod tests;
