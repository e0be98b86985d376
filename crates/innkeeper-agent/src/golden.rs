//! Records a run on both sides, and replays it through the real loop.
//!
//! A [`GoldenRecorder`] stands between an agent and the outside: the bytes of the model with their cuts,
//! the definitions and results of the tools, the decisions about approvals and the random numbers of
//! delays pass through it. [`GoldenRecorder::finish`] makes a [`Golden`] of them, without secrets.
//!
//! [`replay`] runs the same agent over the bytes of a golden. It opens no connection, starts no
//! server and waits for nothing: it has a clock of its own, which jumps to the next recorded event
//! whenever the run has nothing to do. What the run asks for must be what the recording answers; the
//! first request, call or question that differs ends the replay with the nearest recorded one.
//!
//! A recording is replayed before it is returned, so that a golden always replays.

mod approvals;
mod clock;
mod failure;
mod ghost;
mod model;
mod questions;
mod record_error;
mod recorder;
mod replay;
mod replay_input;
mod script;
mod secrets;
mod settings;
mod test_support;
mod tool_records;
mod tools;

#[cfg(test)]
mod tests;

pub use ghost::{GoldenRunError, mcp_ghost_recorded, mcp_ghost_replayed, mcp_ghost_with_golden};
pub use innkeeper_golden::*;
pub use record_error::RecordError;
pub use recorder::{DescribedPrompts, DescribedServers, GoldenRecorder, RunDescription};
pub use replay::{Replay, ReplayError, replay};
pub use replay_input::{ReplayInput, ReplayInputError};
pub use secrets::known_secrets;
pub use test_support::{LoadError, SaveError, assert_matches_golden, load_golden, save_golden};
