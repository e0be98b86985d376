//! The host against real servers in real processes.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod setup;
mod shell;

mod start;
mod install;
mod failure;
mod order;
mod words;
mod stop;
mod process;
mod alone;
mod calls;
mod catalog;
mod record;
