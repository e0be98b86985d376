//! The pages of the documentation with examples of this crate.

#[doc = include_str!("../../../docs/connections.md")]
mod connections {}
