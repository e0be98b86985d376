//! The scripts that Redis runs: no other command comes between their steps.

use redis::Script;

/// All scripts.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) renew: Script,
    pub(super) claim: Script,
    pub(super) release: Script,
    pub(super) keep: Script,
    pub(super) record_call: Script,
    pub(super) forget_calls: Script,
    pub(super) find: Script,
    pub(super) store_session: Script,
    pub(super) find_value: Script,
    pub(super) append: Script,
    pub(super) read_log: Script,
    pub(super) add_rates: Script,
}

/// Returns a script that checks the owner of a key.
fn fenced(text: &str) -> Script {
    Script::new(&[include_str!("scripts/fence.lua"), text].concat())
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            renew: Script::new(include_str!("scripts/renew.lua")),
            claim: Script::new(include_str!("scripts/claim.lua")),
            release: fenced(include_str!("scripts/release.lua")),
            keep: fenced(include_str!("scripts/keep.lua")),
            record_call: fenced(include_str!("scripts/record_call.lua")),
            forget_calls: Script::new(include_str!("scripts/forget_calls.lua")),
            find: Script::new(include_str!("scripts/find.lua")),
            store_session: fenced(include_str!("scripts/store_session.lua")),
            find_value: Script::new(include_str!("scripts/find_value.lua")),
            append: fenced(include_str!("scripts/append.lua")),
            read_log: Script::new(include_str!("scripts/read_log.lua")),
            add_rates: Script::new(include_str!("scripts/add_rates.lua")),
        }
    }
}
