//! What a model may do: how often it is asked, which tools it sees, which calls need a yes.

mod approval;
mod audit;
mod pattern;
mod rate;

pub use approval::{Approval, Approver, Decision, Policy};
pub(crate) use audit::executed;
pub use pattern::{PatternError, Patterns};
pub use rate::RateLimit;
