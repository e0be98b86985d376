//! Tests of the testkit: switches, faults, process checks.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod bytes;
mod calls;
mod client_requests;
mod handshake;
mod in_memory_server;
mod journal;
mod list_changes;
mod lists;
mod llm;
mod process;
mod remote;
mod stdio_client;
mod switches;
