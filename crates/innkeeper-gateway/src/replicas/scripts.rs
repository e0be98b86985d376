//! The scripts that Redis runs: no other command comes between their steps.

use std::sync::LazyLock;

use redis::Script;

/// A script, made at its first use.
type StaticScript = LazyLock<Script>;

pub(super) static RENEW: StaticScript =
    LazyLock::new(|| Script::new(include_str!("scripts/renew.lua")));
pub(super) static CLAIM: StaticScript =
    LazyLock::new(|| Script::new(include_str!("scripts/claim.lua")));
pub(super) static RELEASE: StaticScript =
    LazyLock::new(|| fenced(include_str!("scripts/release.lua")));
pub(super) static KEEP: StaticScript = LazyLock::new(|| fenced(include_str!("scripts/keep.lua")));
pub(super) static RECORD_CALL: StaticScript =
    LazyLock::new(|| fenced(include_str!("scripts/record_call.lua")));
pub(super) static FORGET_CALLS: StaticScript =
    LazyLock::new(|| Script::new(include_str!("scripts/forget_calls.lua")));
pub(super) static FIND: StaticScript =
    LazyLock::new(|| Script::new(include_str!("scripts/find.lua")));
pub(super) static STORE_SESSION: StaticScript =
    LazyLock::new(|| fenced(include_str!("scripts/store_session.lua")));
pub(super) static FIND_VALUE: StaticScript =
    LazyLock::new(|| Script::new(include_str!("scripts/find_value.lua")));
pub(super) static APPEND: StaticScript =
    LazyLock::new(|| fenced(include_str!("scripts/append.lua")));
pub(super) static READ_LOG: StaticScript =
    LazyLock::new(|| Script::new(include_str!("scripts/read_log.lua")));
pub(super) static ADD_RATES: StaticScript =
    LazyLock::new(|| Script::new(include_str!("scripts/add_rates.lua")));

/// Returns a script that checks the owner of a key.
fn fenced(text: &str) -> Script {
    Script::new(&[include_str!("scripts/fence.lua"), text].concat())
}
