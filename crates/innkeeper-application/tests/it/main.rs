//! An application that depends on `innkeeper` alone and hosts a server in its own process.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod callbacks;
mod calls;
mod server;
