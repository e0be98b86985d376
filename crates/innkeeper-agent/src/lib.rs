//! Lets a model's text call the tools of a host.
//!
//! In reading order: [`tools`] is who runs a tool, [`chat`] takes a model's text while it streams,
//! shows what is for the reader and runs what is a call. [`conversation`] is what was said, and
//! [`provider`] are the models that are asked.

pub mod agent;
pub mod chat;
pub mod conversation;
pub mod provider;
pub mod result;
pub mod safety;
pub mod tools;
pub mod turn;
pub mod words;

mod tasks;
pub mod transport;

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use provider::fuzz_codecs;

pub use chat::{Chat, ChatError, Mode, Settings};
pub use tools::{ConnectError, Hints, Offered, OneServer, Output, RunError, ToolRunner};
