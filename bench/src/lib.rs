//! What the measuring programs share: the echo server's answers, the work, the clients, the figures.

pub mod bare;
pub mod client;
pub mod echo;
pub mod figures;
pub mod program;
pub mod remote;
pub mod text;
pub mod work;

#[cfg(feature = "sdk")]
pub mod sdk;

#[cfg(all(feature = "ours", not(test)))]
pub mod ours;

// The command's own log, by links into its crate, so that what ships is what is measured.
#[cfg(all(feature = "ours", not(test)))]
mod cause;
#[cfg(all(feature = "ours", not(test)))]
#[expect(dead_code, reason = "measurements end without a flush and say nothing on stderr")]
mod log;
#[cfg(all(feature = "ours", not(test)))]
mod output;
#[cfg(all(feature = "ours", not(test)))]
#[expect(dead_code, reason = "the log appends its times")]
mod timestamp;
