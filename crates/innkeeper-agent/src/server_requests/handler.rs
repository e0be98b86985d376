//! Answers the requests of servers with a model and the user.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use innkeeper_host::callback::{CallbackFuture, to_callback_result};
use innkeeper_host::{Callback, CallbackCapabilities, CallbackError, HostBuilder, ServerRequest};
use innkeeper_protocol::envelope::code;
use innkeeper_protocol::method;
use serde_json::Value;

use super::audit::{AuditKind, AuditedRequest, RequestOutcome};
use super::budget::RequestBudget;
use super::depth::ActiveSampling;
use super::request_observer::RequestObserver;
use super::user_prompter::UserPrompter;
use super::{elicitation, sampling};
use crate::provider::LlmProvider;
use crate::safety::ApprovalPolicy;
use crate::timing::Timing;

/// The error code of a request that the user, the settings or a budget refuses. MCP has the code for
/// a sampling request that the user rejects.
const REJECTED_CODE: i64 = -1;

/// Default number of requests of one kind per server and minute. A tool that asks in each step of
/// its work stays below.
const DEFAULT_REQUESTS_PER_MINUTE: u32 = 20;

/// Default limit of the tokens that one sampling request may ask for; a long text fits.
const DEFAULT_MAX_SAMPLING_TOKENS: u32 = 8192;

/// Default limit of the input of one sampling request: about 16,000 tokens.
const DEFAULT_MAX_SAMPLING_INPUT_BYTES: usize = 64 << 10;

/// Default limit of the input of all sampling requests of one run: about 64,000 tokens.
const DEFAULT_MAX_SAMPLING_INPUT_BYTES_PER_RUN: usize = 256 << 10;

/// How a [`ServerRequestHandler`] answers the requests of servers.
#[derive(Clone, Debug)]
pub struct ServerRequestSettings {
    /// The user interface. Default: none; each elicitation is then declined.
    pub prompter: Option<Arc<dyn UserPrompter>>,
    /// Whether the model answers sampling requests: without a question, after the approval of the
    /// user, or never. Default: [`ApprovalPolicy::Ask`], which denies each request if there is no
    /// user interface.
    pub sampling: ApprovalPolicy,
    /// Whether [`ServerRequestHandler::register`] declares elicitation to the servers. Default: yes.
    pub elicitation: bool,
    /// Maximum number of sampling requests per server and minute. Default: 20.
    pub max_sampling_per_minute: u32,
    /// Maximum number of elicitations per server and minute. Default: 20.
    pub max_elicitations_per_minute: u32,
    /// Maximum number of tokens that a sampling request may ask for. Default: 8,192.
    pub max_sampling_tokens: u32,
    /// Maximum number of bytes in the parameters of one sampling request. Default: 64 KiB.
    pub max_sampling_input_bytes: usize,
    /// Maximum number of bytes in the parameters of all sampling requests since
    /// [`ServerRequestHandler::start_run`]. Default: 256 KiB.
    pub max_sampling_input_bytes_per_run: usize,
}

impl Default for ServerRequestSettings {
    fn default() -> Self {
        Self {
            prompter: None,
            sampling: ApprovalPolicy::Ask,
            elicitation: true,
            max_sampling_per_minute: DEFAULT_REQUESTS_PER_MINUTE,
            max_elicitations_per_minute: DEFAULT_REQUESTS_PER_MINUTE,
            max_sampling_tokens: DEFAULT_MAX_SAMPLING_TOKENS,
            max_sampling_input_bytes: DEFAULT_MAX_SAMPLING_INPUT_BYTES,
            max_sampling_input_bytes_per_run: DEFAULT_MAX_SAMPLING_INPUT_BYTES_PER_RUN,
        }
    }
}

/// Answers `sampling/createMessage` with a model, and `elicitation/create` with the input of the
/// user. Clones share the model and the budgets.
///
/// The model gets the messages of the server and nothing else: no message of the user's conversation
/// and no tools. `includeContext` and the model preferences have no effect; the result names the
/// model. The handler answers one sampling request of a server at a time, and none that belongs to a
/// call which a model makes in its own task while it answers a sampling request. It refuses requests
/// above a budget, before the user sees them.
///
/// # Examples
///
/// ```no_run
/// use std::sync::Arc;
///
/// use innkeeper_agent::provider::ScriptedProvider;
/// use innkeeper_agent::safety::ApprovalPolicy;
/// use innkeeper_agent::server_requests::{ServerRequestHandler, ServerRequestSettings};
/// use innkeeper_host::{Config, Host};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), innkeeper_host::StartError> {
/// let handler = ServerRequestHandler::new(ServerRequestSettings {
///     sampling: ApprovalPolicy::AllowAll,
///     ..ServerRequestSettings::default()
/// });
/// handler.set_model(Some(Arc::new(ScriptedProvider::new([]))));
/// let host = handler.register(Host::builder(Config::default())).start().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ServerRequestHandler {
    inner: Arc<HandlerState>,
    observer: Option<Arc<dyn RequestObserver>>,
}

pub(super) struct HandlerState {
    pub(super) settings: ServerRequestSettings,
    model: RwLock<Option<Arc<dyn LlmProvider>>>,
    sampling_budget: RequestBudget,
    elicitation_budget: RequestBudget,
    pub(super) active_sampling: ActiveSampling,
    /// The bytes in the parameters of the sampling requests of the run.
    sampling_input_bytes: AtomicUsize,
    timing: Timing,
}

impl fmt::Debug for ServerRequestHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRequestHandler")
            .field("settings", &self.inner.settings)
            .finish_non_exhaustive()
    }
}

impl ServerRequestHandler {
    /// Creates a handler without a model.
    pub fn new(settings: ServerRequestSettings) -> Self {
        let inner = HandlerState {
            model: RwLock::default(),
            sampling_budget: RequestBudget::per_minute(settings.max_sampling_per_minute),
            elicitation_budget: RequestBudget::per_minute(settings.max_elicitations_per_minute),
            active_sampling: ActiveSampling::default(),
            sampling_input_bytes: AtomicUsize::new(0),
            timing: Timing::default(),
            settings,
        };
        Self { inner: Arc::new(inner), observer: None }
    }

    /// Returns a handler with the same model and budgets, whose requests an observer sees.
    pub(crate) fn with_observer(&self, observer: Arc<dyn RequestObserver>) -> Self {
        Self { inner: self.inner.clone(), observer: Some(observer) }
    }

    /// Sets the model that answers sampling requests from now on. A request that the user is asked
    /// about keeps the model that the question names. Without a model, sampling requests fail.
    pub fn set_model(&self, model: Option<Arc<dyn LlmProvider>>) {
        *self.inner.model.write().unwrap_or_else(PoisonError::into_inner) = model;
    }

    /// Starts a run: the limit of the input of all sampling requests applies anew. Call it for each
    /// message of the user.
    pub fn start_run(&self) {
        self.inner.sampling_input_bytes.store(0, Ordering::Relaxed);
    }

    /// Registers the handler with a host, and so declares the capabilities to the servers: sampling
    /// if a request can be answered by the settings, and elicitation with forms and URLs.
    #[must_use]
    pub fn register(&self, builder: HostBuilder) -> HostBuilder {
        let settings = &self.inner.settings;
        let answers_sampling = match settings.sampling {
            ApprovalPolicy::AllowAll => true,
            ApprovalPolicy::Ask | ApprovalPolicy::AskAll => settings.prompter.is_some(),
            ApprovalPolicy::DenyAll => false,
        };
        let mut builder = builder;
        if answers_sampling {
            builder = builder.callback(&CallbackCapabilities::sampling(), self.clone());
        }
        if settings.elicitation {
            builder =
                builder.callback(&CallbackCapabilities::elicitation_with_urls(), self.clone());
        }
        builder
    }
}

impl Callback for ServerRequestHandler {
    fn respond(&self, request: ServerRequest) -> CallbackFuture {
        let Self { inner, observer } = self.clone();
        Box::pin(async move {
            let number = observer.as_ref().map(|observer| observer.on_request(&request));
            let answer = inner.respond(&request).await;
            let response = answer.and_then(|answer| to_callback_result(&answer));
            if let Some(observer) = observer
                && let Some(number) = number
            {
                observer.on_response(number, &response);
            }
            response
        })
    }
}

impl HandlerState {
    async fn respond(&self, request: &ServerRequest) -> Result<Value, CallbackError> {
        let (kind, budget) = match &*request.method {
            method::SAMPLING_CREATE_MESSAGE => (AuditKind::Sampling, &self.sampling_budget),
            method::ELICITATION_CREATE => (AuditKind::Elicitation, &self.elicitation_budget),
            _ => {
                let message = "method not supported by this client";
                return Err(CallbackError::new(code::METHOD_NOT_FOUND, message));
            }
        };
        let mut audit = AuditedRequest::start(kind, request, self.timing.clone());
        let answered = match budget.try_acquire(&request.server, self.timing.now()) {
            Err(delay) => Err(RequestFailure::over_budget(kind, budget.per_minute, delay)),
            Ok(()) => match kind {
                AuditKind::Sampling => sampling::generate_message(self, request, &mut audit).await,
                AuditKind::Elicitation => elicitation::ask_user(self, request, &mut audit).await,
            },
        };
        match answered {
            Ok(answer) => {
                audit.finish(&answer.outcome);
                Ok(answer.result)
            }
            Err(failure) => {
                audit.finish(&failure.outcome);
                Err(failure.error)
            }
        }
    }

    /// Counts the input of a sampling request, unless it exceeds a limit.
    pub(super) fn count_sampling_input(&self, bytes: usize) -> Result<(), RequestFailure> {
        let limit = self.settings.max_sampling_input_bytes;
        if bytes > limit {
            let message = format!("the request has {bytes} bytes, the limit is {limit}: send less");
            return Err(RequestFailure::refusal("input too long", message));
        }
        let limit = self.settings.max_sampling_input_bytes_per_run;
        let added =
            self.sampling_input_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |all| {
                all.checked_add(bytes).filter(|all| *all <= limit)
            });
        match added {
            Ok(_) => Ok(()),
            Err(used) => {
                let message = format!(
                    "the sampling requests of this run may have {limit} bytes; {used} are used"
                );
                Err(RequestFailure::refusal("input of the run used up", message))
            }
        }
    }

    pub(super) fn model(&self) -> Option<Arc<dyn LlmProvider>> {
        self.model.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(super) struct RequestAnswer {
    pub(super) outcome: RequestOutcome,
    pub(super) result: Value,
}

pub(super) struct RequestFailure {
    pub(super) outcome: RequestOutcome,
    pub(super) error: CallbackError,
}

impl RequestFailure {
    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        let error = CallbackError::new(code::INVALID_PARAMS, message);
        Self { outcome: RequestOutcome::Refused("invalid parameters"), error }
    }

    pub(super) fn refusal(reason: &'static str, message: impl Into<String>) -> Self {
        let error = CallbackError::new(REJECTED_CODE, message);
        Self { outcome: RequestOutcome::Refused(reason), error }
    }

    /// The user or the settings deny the request.
    pub(super) fn denial(reason: &'static str, message: impl Into<String>) -> Self {
        let error = CallbackError::new(REJECTED_CODE, message);
        Self { outcome: RequestOutcome::Denied(reason), error }
    }

    /// The model or the user interface failed.
    pub(super) fn internal_error(reason: &'static str, message: impl Into<String>) -> Self {
        let error = CallbackError::new(code::INTERNAL_ERROR, message);
        Self { outcome: RequestOutcome::Failed(reason), error }
    }

    fn over_budget(kind: AuditKind, per_minute: u32, delay: std::time::Duration) -> Self {
        let requests = match kind {
            AuditKind::Sampling => "sampling requests",
            AuditKind::Elicitation => "elicitations",
        };
        let seconds = delay.as_secs_f64().ceil();
        let message = format!(
            "budget of {per_minute} {requests} per minute used up; the next is possible in {seconds} s"
        );
        Self::refusal("budget used up", message)
    }
}

#[cfg(test)]
mod tests;
