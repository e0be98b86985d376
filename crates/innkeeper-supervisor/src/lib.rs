//! The supervisor of one server's process tree, between host and server.
//!
//! The supervisor receives a launch from the host over a socket, starts the server, adopts every
//! orphaned descendant, and terminates all of them on request of the host, when the server's main
//! process exits, and when the host is gone.
//!
//! The crate has two forms. With the cfg `innkeeper_freestanding`, the binary is a static program of
//! some tens of kB for Linux, without libc and without the runtime of the standard library; the
//! build script of `innkeeper-process` builds this form and embeds it. Without the cfg, the library
//! is the same supervisor inside of an ordinary program, for systems where the small program is not
//! available.
//!
//! This is the only crate of the project with unsafe code: in `system.rs`, `launch.rs`, `signals.rs`
//! and `freestanding.rs`.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(unix)]
mod confine;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(unix)]
mod launch;
pub mod launch_request;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod supervise;
#[cfg(unix)]
pub mod system;
pub mod text;
#[cfg(target_os = "linux")]
pub mod tree;
pub mod wire;

#[cfg(unix)]
pub use supervise::run;
