//! Approval of tool calls before they run.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::tools::ToolAnnotations;

/// The policy that decides which calls need approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalPolicy {
    /// No call needs approval.
    #[default]
    AllowAll,
    /// Calls of tools without the read-only annotation need approval. An annotation is a hint from
    /// the server, not a guarantee.
    Ask,
    /// Every call needs approval, for an approver with rules of its own such as
    /// [`ApprovalRules`](super::ApprovalRules).
    AskAll,
    /// All calls are denied.
    DenyAll,
}

/// A request to approve one call.
#[derive(Clone, Debug)]
pub struct ApprovalRequest<'c> {
    /// The public name of the tool.
    pub tool: &'c str,
    /// The arguments as JSON text.
    pub arguments: &'c str,
    /// The annotations of the tool.
    pub annotations: ToolAnnotations,
    /// The definition of the tool as the server sent it; `None` for a tool without an MCP server.
    pub definition: Option<&'c RawValue>,
}

/// The decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// Run the call.
    Approve,
    /// Run the call with these arguments, the text of a JSON object, in place of the model's. The
    /// arguments take the same checks as the model's. In an agent's run, the model gets the arguments
    /// with the result.
    ApproveWith(String),
    /// Do not run the call. The model gets this reason.
    Deny(String),
}

/// Decides about calls, usually by asking the user. Dropping the future withdraws the request. The
/// trait needs the attribute of the crate `async-trait`, which `innkeeper::compat` re-exports.
///
/// # Examples
///
/// ```
/// use innkeeper_agent::safety::{ApprovalDecision, ApprovalRequest, Approver};
///
/// struct OneTool;
///
/// #[async_trait::async_trait]
/// impl Approver for OneTool {
///     async fn decide(&self, call: ApprovalRequest<'_>) -> ApprovalDecision {
///         match call.tool {
///             "notes.append" => ApprovalDecision::Approve,
///             other => ApprovalDecision::Deny(format!("the user does not allow `{other}`")),
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait Approver: Send + Sync {
    /// Decides about one call, without a time limit. The calls of a response are decided one after
    /// the other. In an agent's run, no call of the response runs before all decisions are made. A
    /// panic denies the call.
    async fn decide(&self, call: ApprovalRequest<'_>) -> ApprovalDecision;
}

impl std::fmt::Debug for dyn Approver + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Approver")
    }
}

impl ApprovalPolicy {
    /// Returns whether a call of a tool with these annotations needs approval; `None` if the call
    /// is denied.
    pub(crate) fn requires_approval(self, hints: ToolAnnotations) -> Option<bool> {
        match self {
            Self::AllowAll => Some(false),
            Self::Ask => Some(!hints.read_only),
            Self::AskAll => Some(true),
            Self::DenyAll => None,
        }
    }
}
