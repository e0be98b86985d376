//! The real program, driven from outside.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking where it stands")]

mod program;

mod ask;
mod builtin_servers;
mod command_line;
mod extract;
mod first_minute;
mod log_stats;
mod login;
mod model;
mod people;
mod pins;
mod real_servers;
mod signals;
mod trust;
mod verbs;
