//! The transports: connections with lines (stdio, Unix socket) and HTTP.

pub(crate) mod connection;
pub(crate) mod http;
mod incoming;

pub(crate) use incoming::malformed_error;

#[cfg(any(test, fuzzing))]
pub use http::fuzz_gateway_request;
