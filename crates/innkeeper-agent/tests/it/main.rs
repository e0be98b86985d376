//! Models and chats from outside: what goes in, what is run, what comes out.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod setup;

mod agent;
mod cache;
mod calls;
mod draining;
mod limits;
mod modes;
mod process;
mod prompt;
mod record;
mod rounds;
#[cfg(unix)]
mod secrets;
#[cfg(unix)]
mod wires;
