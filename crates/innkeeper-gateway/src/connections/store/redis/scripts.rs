//! The scripts that Redis runs: each changes one connection at once, and no other command comes
//! between its steps.

use std::sync::LazyLock;
use std::time::Duration;

use redis::{Script, ScriptInvocation};

use super::keys;
use crate::connections::lifecycle::ConnectionLifecycleState;
use crate::connections::state::ConnectionId;
use crate::connections::store::{EXPIRED_TIME, TERMINATED_TIME, milliseconds};

/// A script with its keys and arguments.
pub(super) type Call<'a> = ScriptInvocation<'a>;

/// A script, made at its first use.
type StaticScript = LazyLock<Script>;

pub(super) static CREATE: StaticScript =
    LazyLock::new(|| script(include_str!("scripts/create.lua")));
pub(super) static FIND: StaticScript = LazyLock::new(|| script(include_str!("scripts/find.lua")));
pub(super) static TOUCH: StaticScript = LazyLock::new(|| script(include_str!("scripts/touch.lua")));
pub(super) static ADVANCE: StaticScript =
    LazyLock::new(|| script(include_str!("scripts/advance.lua")));
pub(super) static SET_DATA: StaticScript =
    LazyLock::new(|| script(include_str!("scripts/set_data.lua")));
pub(super) static ACTIVE: StaticScript =
    LazyLock::new(|| script(include_str!("scripts/active.lua")));
pub(super) static PUBLISH: StaticScript =
    LazyLock::new(|| script(include_str!("scripts/publish.lua")));
pub(super) static OPEN_EVENTS: StaticScript =
    LazyLock::new(|| script(include_str!("scripts/open_events.lua")));
pub(super) static NEXT_EVENTS: StaticScript =
    LazyLock::new(|| script(include_str!("scripts/next_events.lua")));

fn script(text: &str) -> Script {
    Script::new(&[include_str!("scripts/prelude.lua"), text].concat())
}

/// Returns a call with the keys and the arguments that `prelude.lua` expects.
pub(super) fn call<'a>(script: &'a Script, id: ConnectionId, expiry: Duration) -> Call<'a> {
    let mut call = script.prepare_invoke();
    for key in keys::script_keys(id) {
        call.key(key);
    }
    call.arg(id.to_string()).arg(keys::NOTICE_CHANNEL).arg(milliseconds(expiry));
    call.arg(milliseconds(TERMINATED_TIME)).arg(milliseconds(EXPIRED_TIME));
    call.arg(ConnectionLifecycleState::Active.as_str());
    call.arg(ConnectionLifecycleState::Terminated.as_str());
    call
}
