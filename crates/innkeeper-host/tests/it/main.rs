//! Tests of the host with real servers in real processes.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod setup;
mod shell_server;

mod alone;
mod auth;
mod cache;
mod callbacks;
mod calls;
mod catalog;
mod concurrent_starts;
mod error_messages;
mod failure;
mod faults;
mod guard;
mod health;
mod in_process;
mod install;
mod limits;
mod log_level;
mod order;
mod partial;
mod pass_through;
mod pins;
mod process;
mod raw_request;
mod record;
mod reload;
mod remote;
mod remote_client;
mod restart;
mod retry;
mod round_trips;
mod start;
mod start_wait;
mod stop;
mod stop_server;
mod tasks;
mod watch;
