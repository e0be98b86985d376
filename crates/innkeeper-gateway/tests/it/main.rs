//! Integration tests: a gateway before real server processes.

mod bridge;
mod connection;
mod http;
mod names;
mod questions;
mod setup;
mod sharing;
