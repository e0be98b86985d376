//! Applications that depend on `innkeeper` alone: servers as child processes, in the process of the
//! application, and behind a sign-in; a model with a conversation of the application; and the programs
//! of documents 001 and 004, under the package names of the documents.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

extern crate innkeeper as gamecode_mcp_host;
extern crate innkeeper as mcp_host;
extern crate innkeeper_mcp_client as gamecode_mcp_client;
extern crate innkeeper_mcp_client as mcp_client;

mod acceptance;
mod agent;
mod callbacks;
mod calls;
mod prompt;
mod protected_server;
mod server;
mod sign_in;
mod streaming;
