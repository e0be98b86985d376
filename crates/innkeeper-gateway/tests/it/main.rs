//! Integration tests: a gateway before real server processes.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod arbitrary_requests;
mod bridge;
mod connection;
mod http;
mod limits;
mod names;
mod questions;
mod setup;
mod sse;
