//! Server-side pieces of the protocol.

pub(crate) mod cursor;
pub(crate) mod handshake;
pub(crate) mod incoming_meta;
pub(crate) mod json_object;
