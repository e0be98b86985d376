//! The plan of one call: server, fault, expected outcome.

use std::time::Duration;

use innkeeper_host::{CallError, CallOptions, ToolResult};
use serde_json::{Value, json};

use super::servers::{SERVER_NAMES, STDIO_SERVER_COUNT};

/// One of this number of calls has a fault.
const CALLS_PER_FAULT: u64 = 100;
/// Timeout of a call with a late response; the response arrives after twice this time.
const LATE_CALL_TIMEOUT: Duration = Duration::from_millis(300);

/// A fault of a server, requested in the arguments of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallFault {
    Late,
    Failure,
    Error,
    Twice,
    Noise,
    UnknownId,
    Malformed,
    Crash,
}

/// All faults. A remote server supports only the first ones, because the proxy matches their
/// responses to streams by content.
pub(super) const FAULTS: [CallFault; 8] = [
    CallFault::Late,
    CallFault::Failure,
    CallFault::Error,
    CallFault::Malformed,
    CallFault::Twice,
    CallFault::Noise,
    CallFault::UnknownId,
    CallFault::Crash,
];
const REMOTE_FAULT_COUNT: usize = 4;

/// The plan of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallPlan {
    pub(super) id: u64,
    pub(super) server: usize,
    pub(super) fault: Option<CallFault>,
}

impl CallPlan {
    /// Returns the plan for an id, the same in every run.
    pub(super) fn for_id(id: u64) -> Self {
        let chance = splitmix64(id);
        let server = (chance % SERVER_NAMES.len() as u64) as usize;
        let chance = chance / SERVER_NAMES.len() as u64;
        let faults =
            if server < STDIO_SERVER_COUNT { &FAULTS[..] } else { &FAULTS[..REMOTE_FAULT_COUNT] };
        let kind = (chance / CALLS_PER_FAULT) as usize % faults.len();
        let fault = chance.is_multiple_of(CALLS_PER_FAULT).then(|| faults[kind]);
        Self { id, server, fault }
    }

    pub(super) fn arguments(self) -> Value {
        match self.fault {
            None => json!({"id": self.id}),
            Some(fault) => json!({"id": self.id, "fault": fault.as_str()}),
        }
    }

    pub(super) fn options(self) -> CallOptions {
        let timeout = (self.fault == Some(CallFault::Late)).then_some(LATE_CALL_TIMEOUT);
        CallOptions { timeout, ..CallOptions::default() }
    }

    /// Whether the outcome is the expected one for this call.
    pub(super) fn is_expected(self, outcome: &Result<ToolResult, CallError>) -> bool {
        match (self.fault, outcome) {
            (Some(CallFault::Late), Err(CallError::Timeout { .. }))
            | (Some(CallFault::Malformed), Err(CallError::Protocol { .. }))
            | (Some(CallFault::Crash), Err(CallError::Unavailable { may_have_run: true, .. })) => {
                true
            }
            (Some(CallFault::Error), Err(CallError::Server { error, .. })) => {
                error.message == self.id.to_string()
            }
            (Some(CallFault::Failure), Ok(result)) => {
                result.is_error() && self.matches_result(result)
            }
            (
                None | Some(CallFault::Twice | CallFault::Noise | CallFault::UnknownId),
                Ok(result),
            ) => !result.is_error() && self.matches_result(result),
            _ => false,
        }
    }

    fn matches_result(self, result: &ToolResult) -> bool {
        let value: Value = serde_json::from_str(result.raw().get()).unwrap_or_default();
        value["content"][0]["text"].as_str() == Some(&self.id.to_string())
    }
}

impl CallFault {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Late => "late",
            Self::Failure => "failure",
            Self::Error => "error",
            Self::Twice => "twice",
            Self::Noise => "noise",
            Self::UnknownId => "stranger",
            Self::Malformed => "malformed",
            Self::Crash => "crash",
        }
    }
}

/// A reproducible pseudo-random number.
fn splitmix64(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
