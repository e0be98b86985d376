//! Runs language models that call the tools of an MCP host.
//!
//! In reading order: [`tools`] runs a tool, [`chat`] reads the streamed text of an application's
//! own model and runs the calls in the text, [`conversation`] keeps the messages and their
//! [`content`], [`tool_search`] finds tools among many, [`provider`] encodes requests to models, [`agent`] drives a whole run, and
//! [`ghost`] does so for one prompt with servers of its own.

pub mod agent;
pub mod chat;
pub mod content;
pub mod conversation;
mod executor;
pub mod ghost;
pub mod golden;
pub mod provider;
pub mod run;
pub mod run_json;
pub mod safety;
pub mod server_requests;
pub mod tool_output;
pub mod tool_search;
pub mod tools;

mod millis;
mod settings;
mod tasks;
mod timing;
pub mod transport;

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use provider::fuzz_codecs;

pub use chat::{Chat, ChatError, ChatSettings, StreamingMode};
pub use tools::{
    AvailableTool, ConnectError, SingleServer, ToolAnnotations, ToolError, ToolOutput, ToolRunner,
};
