//! The user interface that asks the user about requests of servers.

use std::fmt;

use async_trait::async_trait;
use innkeeper_host::CallReference;
use serde_json::{Map, Value};

use super::form::Form;
use crate::conversation::Message;
use crate::safety::ApprovalDecision;

/// Asks the user about requests of servers. The trait needs the attribute of the crate
/// `async-trait`, which `innkeeper::compat` re-exports.
///
/// All texts of a request come from the server: escape them before display, for example with
/// [`display_safe`](innkeeper_host::display_safe). The name of the server comes from the
/// configuration. Dropping a future withdraws the question, because the server cancelled the
/// request, the call ended, or the time is over. Questions may arrive at the same time: show them one
/// after the other. A panic becomes an error for the server.
///
/// # Examples
///
/// ```
/// use innkeeper_agent::safety::ApprovalDecision;
/// use innkeeper_agent::server_requests::{
///     ElicitationMode, ElicitationRequest, ElicitationResponse, SamplingRequest, UserPrompter,
/// };
///
/// /// Permits short messages of the model, and leaves all forms as the server fills them in.
/// struct Defaults;
///
/// #[async_trait::async_trait]
/// impl UserPrompter for Defaults {
///     async fn approve_sampling(&self, request: SamplingRequest<'_>) -> ApprovalDecision {
///         match request.max_tokens {
///             0..=256 => ApprovalDecision::Approve,
///             _ => ApprovalDecision::Deny("too long".to_owned()),
///         }
///     }
///
///     async fn answer_elicitation(&self, request: ElicitationRequest<'_>) -> ElicitationResponse {
///         match request.mode {
///             ElicitationMode::Form(form) => ElicitationResponse::Accept(form.defaults()),
///             ElicitationMode::Url { .. } => ElicitationResponse::Decline,
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait UserPrompter: Send + Sync {
    /// Asks whether the model may answer the request of a server. The server gets the response of
    /// the model, and the reason of a denial.
    async fn approve_sampling(&self, request: SamplingRequest<'_>) -> ApprovalDecision;

    /// Asks the user to fill in a form or to open a URL. Values that the form rejects are not sent:
    /// the server gets an error. Check them with [`Form::check`] while the user can still correct
    /// them.
    async fn answer_elicitation(&self, request: ElicitationRequest<'_>) -> ElicitationResponse;
}

impl fmt::Debug for dyn UserPrompter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserPrompter")
    }
}

/// A request of a server for a message of the model (`sampling/createMessage`).
#[derive(Clone, Copy, Debug)]
pub struct SamplingRequest<'r> {
    /// The name of the server.
    pub server: &'r str,
    /// The call that the request belongs to.
    pub call: &'r CallReference,
    /// The name of the provider that will answer.
    pub provider: &'r str,
    /// The name of the model that will answer.
    pub model: &'r str,
    /// The system prompt of the server; may be empty.
    pub system: &'r str,
    /// The messages of the server. The model gets nothing else: no message of the user's
    /// conversation and no tool.
    pub messages: &'r [Message],
    /// Maximum number of tokens that the server requests.
    pub max_tokens: u32,
}

/// A request of a server for input of the user (`elicitation/create`).
#[derive(Clone, Copy, Debug)]
pub struct ElicitationRequest<'r> {
    /// The name of the server.
    pub server: &'r str,
    /// The call that the request belongs to.
    pub call: &'r CallReference,
    /// The message of the server to the user.
    pub message: &'r str,
    /// What the user is asked for.
    pub mode: ElicitationMode<'r>,
}

/// What a server asks the user for.
#[derive(Clone, Copy, Debug)]
pub enum ElicitationMode<'r> {
    /// Values of a form.
    Form(&'r Form),
    /// A visit of a web page. Nothing of this library opens or loads the page. The user interface
    /// shows the URL with its host, and opens the page only if the user agrees.
    Url {
        /// The URL in normalized form, with an ASCII host: `https`, or `http` to the own machine.
        url: &'r str,
        /// The host of the URL.
        host: &'r str,
    },
}

/// The answer of the user to an elicitation.
#[derive(Clone, Debug, PartialEq)]
pub enum ElicitationResponse {
    /// The values of the form by the names of the fields, or the agreement to open the URL, without
    /// values.
    Accept(Map<String, Value>),
    /// The user declined.
    Decline,
    /// The user closed the question without a decision.
    Cancel,
}
