//! Which server a call goes to, which fault it asks for, and what must come of it.

use std::time::Duration;

use innkeeper_host::{CallError, CallOptions, ToolResult};
use serde_json::{Value, json};

use super::servers::{NAMES, STDIO};

/// One call in so many asks for a fault.
const FAULT_IN: u64 = 100;
/// How long a caller waits for an answer that is asked to be late; it comes at twice that.
const IMPATIENT: Duration = Duration::from_millis(300);

/// What a server is asked to do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Late,
    Failure,
    Error,
    Twice,
    Noise,
    Stranger,
    Malformed,
    Crash,
}

/// All of them; the first so many are what a remote server can be asked for, whose answers find
/// their stream by what is in them.
pub(super) const FAULTS: [Fault; 8] = [
    Fault::Late,
    Fault::Failure,
    Fault::Error,
    Fault::Malformed,
    Fault::Twice,
    Fault::Noise,
    Fault::Stranger,
    Fault::Crash,
];
const REMOTE: usize = 4;

/// One call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw {
    pub(super) id: u64,
    pub(super) server: usize,
    pub(super) fault: Option<Fault>,
}

impl Draw {
    /// The same for the same number in every run.
    pub(super) fn of(id: u64) -> Self {
        let chance = mixed(id);
        let server = (chance % NAMES.len() as u64) as usize;
        let chance = chance / NAMES.len() as u64;
        let faults = if server < STDIO { &FAULTS[..] } else { &FAULTS[..REMOTE] };
        let kind = (chance / FAULT_IN) as usize % faults.len();
        let fault = chance.is_multiple_of(FAULT_IN).then(|| faults[kind]);
        Self { id, server, fault }
    }

    pub(super) fn arguments(self) -> Value {
        match self.fault {
            None => json!({"id": self.id}),
            Some(fault) => json!({"id": self.id, "fault": fault.word()}),
        }
    }

    pub(super) fn options(self) -> CallOptions {
        let timeout = (self.fault == Some(Fault::Late)).then_some(IMPATIENT);
        CallOptions { timeout, ..CallOptions::default() }
    }

    /// Whether the outcome is the one that must come of it, with the answer to this call.
    pub(super) fn judge(self, outcome: &Result<ToolResult, CallError>) -> bool {
        match (self.fault, outcome) {
            (Some(Fault::Late), Err(CallError::Timeout { .. }))
            | (Some(Fault::Malformed), Err(CallError::Protocol { .. }))
            | (Some(Fault::Crash), Err(CallError::Unavailable { may_have_run: true, .. })) => true,
            (Some(Fault::Error), Err(CallError::Server { error, .. })) => {
                error.message == self.id.to_string()
            }
            (Some(Fault::Failure), Ok(result)) => result.is_error() && self.is_answered_by(result),
            (None | Some(Fault::Twice | Fault::Noise | Fault::Stranger), Ok(result)) => {
                !result.is_error() && self.is_answered_by(result)
            }
            _ => false,
        }
    }

    fn is_answered_by(self, result: &ToolResult) -> bool {
        let value: Value = serde_json::from_str(result.raw().get()).unwrap_or_default();
        value["content"][0]["text"].as_str() == Some(&self.id.to_string())
    }
}

impl Fault {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Late => "late",
            Self::Failure => "failure",
            Self::Error => "error",
            Self::Twice => "twice",
            Self::Noise => "noise",
            Self::Stranger => "stranger",
            Self::Malformed => "malformed",
            Self::Crash => "crash",
        }
    }
}

/// A number that looks like chance, the same each time.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
