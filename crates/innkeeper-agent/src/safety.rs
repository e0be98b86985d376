//! Limits on a model: request rate, blocked tools, approval of calls.

mod approval;
mod audit;
mod blocklist;
mod rate_limit;

pub use approval::{ApprovalDecision, ApprovalPolicy, ApprovalRequest, Approver};
pub(crate) use audit::emit_tool_executed;
pub use blocklist::{PatternError, ToolBlocklist};
pub use rate_limit::RateLimit;
