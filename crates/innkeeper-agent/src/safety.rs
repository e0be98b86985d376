//! Safety rules for models: request rate, call rate, blocked tools, approval of calls, audit.

mod approval;
mod approval_rules;
mod audit;
mod blocklist;
mod permanent_rules;
mod rate_limit;

pub use approval::{ApprovalDecision, ApprovalPolicy, ApprovalRequest, Approver};
pub use approval_rules::{ApprovalRule, ApprovalRules, DecisionScope, DefaultDecision, RuledTool};
pub(crate) use audit::{emit_tool_executed, short_hash};
pub(crate) use blocklist::blocked_tool_message;
pub use blocklist::{PatternError, ToolBlocklist};
pub use permanent_rules::{PermanentRuleError, PermanentRules, ToolFingerprint};
pub use rate_limit::RateLimit;
