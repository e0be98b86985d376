//! Test tools for MCP hosts: faulty servers, a scripted model, process checks.
//!
//! [`fixture()`] configures the fixture server `innkeeper-fixture-server`, a process over stdio, and
//! [`Journal`] reads what the server received. [`RemoteServer`] serves the same fixture server over
//! HTTP, SSE, a WebSocket or a unix socket, with the faults of these transports. [`InMemoryServer`]
//! is a server in memory, for tests with paused time. [`Journal`] and [`InMemoryServer`] check the
//! client's messages against the schema of the specification. [`ScriptedLlm`] is a model with scripted
//! responses over the HTTP API of each provider; `LlamaServer` runs a small real model on machines
//! that support it, `RedisServer` is a real Redis, and `Haproxy` a real proxy. [`ProcessTag`] and the functions for processes
//! find what a host left behind.
//!
//! The crate shares no code with the product crates, so that the same bug in both cannot hide.

mod client_messages;
#[cfg(target_os = "linux")]
mod debian_program;
#[cfg(unix)]
mod fixture;
#[cfg(unix)]
pub mod fixture_server;
#[cfg(target_os = "linux")]
mod haproxy;
mod in_memory_server;
mod journal;
#[cfg(target_os = "linux")]
mod llama;
#[cfg(unix)]
pub mod llm;
mod pages;
mod process_tag;
#[cfg(target_os = "linux")]
mod processes;
mod recordings;
#[cfg(target_os = "linux")]
mod redis_server;
#[cfg(unix)]
pub mod remote;
#[cfg(target_os = "linux")]
mod self_usage;

#[cfg(target_os = "linux")]
pub use debian_program::free_port;
#[cfg(unix)]
pub use fixture::{Fixture, built_program, fixture, fixture_program, mcp_json};
#[cfg(unix)]
pub use fixture_server::read_call_log;
#[cfg(target_os = "linux")]
pub use haproxy::Haproxy;
pub use in_memory_server::{InMemoryServer, ServerFeatures};
pub use journal::{Journal, JournalEntry};
#[cfg(target_os = "linux")]
pub use llama::LlamaServer;
#[cfg(unix)]
pub use llm::{Script, ScriptedLlm, ScriptedReply};
pub use pages::{ShellBlock, shell_blocks};
pub use process_tag::ProcessTag;
#[cfg(target_os = "linux")]
pub use processes::{ProcessInfo, tagged_processes, wait_gone, wait_gone_async};
pub use recordings::{recorded_form, recorded_tools};
#[cfg(target_os = "linux")]
pub use redis_server::{RedisSentinel, RedisServer};
#[cfg(unix)]
pub use remote::{AnnouncedEndpoint, Fault, RecordedRequest, RemoteServer};
#[cfg(target_os = "linux")]
pub use self_usage::{open_fds, rss_kib, thread_count, thread_cpu_time, zombie_children};
