//! Integration tests: a gateway before real server processes.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod bridge;
mod connection;
mod http;
mod large_results;
mod names;
mod questions;
mod search;
mod setup;
mod sharing;
mod sharing_attacks;
