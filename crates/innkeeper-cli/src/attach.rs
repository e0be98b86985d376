//! Uses the servers of a running `innkeeper serve` of the same configuration.
//!
//! The gateway listens on a socket that only its user reaches, and on Linux serves no process of a
//! sandbox: a sandboxed server has the same user, and would reach every other server there. The name of the socket is a digest of
//! the configuration: after a change, no command finds the socket, and each starts its own servers. A
//! connection is for one server. Its first line names the server and the item; the response says
//! whether the server is ready and has the item; MCP messages follow.

mod requested_item;

#[cfg(unix)]
mod directory;
#[cfg(unix)]
mod greeting;

#[cfg(unix)]
mod client;
#[cfg(unix)]
mod listener;
#[cfg(not(unix))]
mod unsupported;

pub(crate) use requested_item::RequestedItem;

#[cfg(unix)]
pub(crate) use client::{Attached, connect, restart};
#[cfg(unix)]
pub(crate) use directory::socket_directory;
#[cfg(unix)]
pub(crate) use listener::{AttachListener, serve};
#[cfg(not(unix))]
pub(crate) use unsupported::{AttachListener, Attached, connect, restart, serve, socket_directory};
