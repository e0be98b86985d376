//! Doctests of the Rust programs on the pages of the repository.

#[doc = include_str!("../../../README.md")]
mod readme {}

#[doc = include_str!("../../../docs/getting-started.md")]
mod getting_started {}

#[doc = include_str!("../../../docs/models.md")]
mod models {}

#[doc = include_str!("../../../docs/streaming.md")]
mod streaming {}

#[doc = include_str!("../../../docs/tool-calls.md")]
mod tool_calls {}

#[doc = include_str!("../../../docs/trust.md")]
mod trust {}
