//! The scripts that Redis runs: each changes one connection at once, and no other command comes
//! between its steps.

use redis::{Script, ScriptInvocation};

use super::keys;
use crate::connections::lifecycle::ConnectionLifecycleState;
use crate::connections::state::ConnectionId;
use crate::connections::store::{EXPIRED_TIME, StoreOptions, TERMINATED_TIME, milliseconds};

/// A script with its keys and arguments.
pub(super) type Call<'a> = ScriptInvocation<'a>;

/// All scripts.
#[derive(Debug)]
pub(super) struct Scripts {
    expiry_ms: u64,
    pub(super) create: Script,
    pub(super) find: Script,
    pub(super) touch: Script,
    pub(super) advance: Script,
    pub(super) set_data: Script,
    pub(super) active: Script,
    pub(super) publish: Script,
    pub(super) open_events: Script,
    pub(super) next_events: Script,
}

fn script(text: &str) -> Script {
    Script::new(&[include_str!("scripts/prelude.lua"), text].concat())
}

impl Scripts {
    pub(super) fn new(options: &StoreOptions) -> Self {
        Self {
            expiry_ms: milliseconds(options.expiry()),
            create: script(include_str!("scripts/create.lua")),
            find: script(include_str!("scripts/find.lua")),
            touch: script(include_str!("scripts/touch.lua")),
            advance: script(include_str!("scripts/advance.lua")),
            set_data: script(include_str!("scripts/set_data.lua")),
            active: script(include_str!("scripts/active.lua")),
            publish: script(include_str!("scripts/publish.lua")),
            open_events: script(include_str!("scripts/open_events.lua")),
            next_events: script(include_str!("scripts/next_events.lua")),
        }
    }

    /// Returns a call with the keys and the arguments that `prelude.lua` expects.
    pub(super) fn call<'a>(&self, script: &'a Script, id: ConnectionId) -> Call<'a> {
        let mut call = script.prepare_invoke();
        for key in keys::script_keys(id) {
            call.key(key);
        }
        call.arg(id.to_string()).arg(keys::NOTICE_CHANNEL).arg(self.expiry_ms);
        call.arg(milliseconds(TERMINATED_TIME)).arg(milliseconds(EXPIRED_TIME));
        call.arg(ConnectionLifecycleState::Active.as_str());
        call.arg(ConnectionLifecycleState::Terminated.as_str());
        call
    }
}
