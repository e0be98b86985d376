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

// The command's own log, as it ships: what one line a call costs is a matter of its format.
#[cfg(feature = "ours")]
#[path = "../../crates/innkeeper-cli/src/cause.rs"]
mod cause;
#[cfg(feature = "ours")]
#[path = "../../crates/innkeeper-cli/src/log.rs"]
mod log;
#[cfg(feature = "ours")]
mod output {
    //! The part of the command's output room that its log needs.
    #[path = "../../../crates/innkeeper-cli/src/output/safe.rs"]
    mod safe;
    pub(crate) use safe::{deceives, inline};
}
#[cfg(feature = "ours")]
#[path = "../../crates/innkeeper-cli/src/timestamp.rs"]
mod timestamp;
