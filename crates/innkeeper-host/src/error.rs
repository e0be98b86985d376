//! What can go wrong, each variant naming its server, tool or key and keeping its source.
//!
//! In reading order: the class all errors have, a call and what may be wrong with it, the start of
//! all servers and the restart of one, the words.

mod class;

mod argument;
mod call;
mod lost;
mod protocol;
mod routing;

mod restart;
mod start;

pub(crate) mod words;

pub use argument::ArgumentProblem;
pub use call::{CallError, CallKind};
pub use class::ErrorClass;
pub use lost::Lost;
pub use protocol::ProtocolFault;
pub use restart::RestartError;
pub use routing::RoutingError;
pub use start::{Phase, ServerFailure, StartError, StartReason};

#[cfg(test)]
mod tests;
