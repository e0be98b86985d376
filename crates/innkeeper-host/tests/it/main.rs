//! The host against real servers in real processes.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod setup;
mod shell;

mod alone;
mod auth;
mod cache;
mod callbacks;
mod calls;
mod catalog;
mod failure;
mod faults;
mod guard;
mod health;
mod install;
mod limits;
mod order;
mod pins;
mod process;
mod record;
mod reload;
mod remote;
mod restart;
mod retry;
mod rounds;
mod start;
mod stop;
mod tasks;
mod watch;
mod words;
