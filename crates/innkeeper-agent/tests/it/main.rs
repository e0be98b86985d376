//! Models and chats from outside: what goes in, what is run, what comes out.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]
#![expect(clippy::print_stderr, reason = "what is skipped, and what a long run found, is said")]

mod setup;

mod agent;
mod cache;
mod calls;
mod draining;
mod limits;
#[cfg(target_os = "linux")]
mod live;
mod modes;
mod process;
mod prompt;
mod record;
mod recovery;
mod rounds;
#[cfg(unix)]
mod secrets;
#[cfg(unix)]
mod wires;
