//! Offers the servers of an MCP host as one MCP server to remote and local clients of any protocol
//! revision.
//!
//! The modules stand from the bottom up: a module uses only modules before it.

mod host_name;
mod principal;
mod tasks;

mod rejection;

pub mod auth;
pub mod origin;
pub mod policy;
pub mod rate_limits;

#[cfg(test)]
mod test_config;

pub use principal::Principal;
pub use rejection::Rejection;
