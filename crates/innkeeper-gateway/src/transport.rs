//! The transports: connections with lines (stdio, Unix socket) and HTTP.

pub(crate) mod connection;
pub(crate) mod http;
mod incoming;
pub(crate) mod request_body;
