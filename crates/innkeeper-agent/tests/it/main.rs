//! The chat integration from outside: an answer goes in as a stream of text.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod setup;

mod cache;
mod calls;
mod draining;
mod limits;
mod modes;
mod process;
mod prompt;
mod record;
mod rounds;
