//! Integration tests: a gateway before real server processes.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod approvals;
mod arbitrary_requests;
mod bindings;
mod bridge;
mod cache_hints;
mod client_shares;
mod connection;
mod connection_service;
#[cfg(target_os = "linux")]
mod connection_store;
mod console;
mod half_open;
mod http;
mod large_results;
mod lenient_http;
mod limits;
mod lossless;
mod names;
mod neighbours;
mod operator_forms;
mod question_pages;
#[cfg(target_os = "linux")]
mod question_store;
mod questions;
mod rest;
mod revival;
mod rmcp_client;
mod search;
mod setup;
mod sharing;
mod sharing_attacks;
mod silent_calls;
mod spans;
mod sse;
mod tasks;
