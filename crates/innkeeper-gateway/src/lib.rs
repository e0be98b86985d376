//! Offers the servers of an MCP host as one MCP server to remote and local clients of any protocol
//! revision.
//!
//! The modules stand from the bottom up: a module uses only modules before it.

mod principal;

pub use principal::Principal;
