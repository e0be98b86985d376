//! Integration tests of the agent crate.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]
#![expect(clippy::print_stderr, reason = "skipped tests and long measurements report on stderr")]

mod setup;
mod storage;

mod agent;
mod backpressure;
mod cache;
mod calls;
mod chat_run;
mod event_log;
mod ghost;
mod golden;
mod hidden_servers;
mod limits;
#[cfg(target_os = "linux")]
mod live;
mod memory;
mod modes;
mod process;
mod prompt;
#[cfg(unix)]
mod provider_apis;
mod recovery;
#[cfg(unix)]
mod resource_tools;
mod secrets;
mod server_requests;
mod spans;
#[cfg(unix)]
mod whole_results;
