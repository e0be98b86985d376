//! Server-side pieces of the protocol.

pub(crate) mod cursor;
