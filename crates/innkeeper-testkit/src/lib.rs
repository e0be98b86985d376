//! What tests of an MCP host need: a server that misbehaves on request, and eyes on the result.
//!
//! [`fx`] configures the fixture server `innkeeper-fx`, a real process over stdio; [`Journal`]
//! reads what it received. [`Remote`] puts the same server behind HTTP, SSE, a WebSocket or a unix
//! socket, with the faults only those have. [`Peer`] is a server in memory, for tests that stop the clock.
//! [`ScriptedLlm`] is a model that says what a script has it say, over each provider's HTTP;
//! `LlamaServer` is a small real one, where this machine can run it.
//! [`Nonce`] and the counts beside it show what a host left behind.
//!
//! Nothing here is shared with the product crates, so that an error in one cannot hide behind the
//! same error in the other.

#[cfg(target_os = "linux")]
mod census;
#[cfg(unix)]
mod fixture;
#[cfg(unix)]
pub mod fx;
mod journal;
#[cfg(target_os = "linux")]
mod llama;
#[cfg(unix)]
pub mod llm;
mod nonce;
#[cfg(target_os = "linux")]
mod own;
mod peer;
#[cfg(unix)]
pub mod remote;

#[cfg(target_os = "linux")]
pub use census::{Found, processes_with, until_gone, wait_gone};
#[cfg(unix)]
pub use fixture::{Fixture, fx, fx_program, mcp_json};
#[cfg(unix)]
pub use fx::tallied;
pub use journal::{Entry, Journal};
#[cfg(target_os = "linux")]
pub use llama::LlamaServer;
#[cfg(unix)]
pub use llm::{Script, ScriptedLlm, Step};
pub use nonce::Nonce;
#[cfg(target_os = "linux")]
pub use own::{open_fds, rss_kib, threads, zombie_children};
pub use peer::{Offer, Peer};
#[cfg(unix)]
pub use remote::{Endpoint, Fault, Remote, Seen};
