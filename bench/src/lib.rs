//! What the measuring programs share: the echo server's answers, the work, the clients, the figures.

pub mod bare;
pub mod client;
pub mod echo;
pub mod figures;
#[cfg(feature = "ours")]
pub mod ours;
pub mod program;
pub mod sdk;
pub mod text;
pub mod work;
