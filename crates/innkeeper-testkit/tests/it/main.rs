//! The kit itself: each switch does what it says, and the counts see what there is.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod asks;
mod bytes;
mod calls;
mod changes;
mod handshake;
mod journal;
mod lists;
mod llm;
mod peer;
mod process;
mod remote;
mod switches;
mod talk;
