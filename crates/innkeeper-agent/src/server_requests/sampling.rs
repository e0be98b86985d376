//! Answers `sampling/createMessage` with the model.

mod params;

use innkeeper_host::ServerRequest;
use serde_json::json;

use super::audit::{AuditedRequest, RequestOutcome};
use super::handler::{HandlerState, RequestAnswer, RequestFailure};
use super::user_prompter::SamplingRequest;
use crate::provider::{FinishReason, LlmError, LlmErrorKind, LlmProvider, Response};
use crate::safety::{ApprovalDecision, ApprovalPolicy};
use params::SamplingParams;

/// Asks the user if the settings require this, and sends the messages of the server to the model.
pub(super) async fn generate_message(
    state: &HandlerState,
    request: &ServerRequest,
    audit: &mut AuditedRequest,
) -> Result<RequestAnswer, RequestFailure> {
    let permit = state.active_sampling.start(&request.server).ok_or_else(|| {
        let message = "sampling inside of sampling: another sampling request is being answered";
        RequestFailure::refusal("nested", message)
    })?;
    let params = request.params.as_deref().map_or("null", |params| params.get());
    state.count_sampling_input(params.len())?;
    let params = SamplingParams::parse(params).map_err(RequestFailure::invalid_params)?;
    let limit = state.settings.max_sampling_tokens;
    if params.max_tokens > limit {
        let requested = params.max_tokens;
        let message = format!("`maxTokens` of {requested} exceeds the budget of {limit} tokens");
        return Err(RequestFailure::refusal("too many tokens", message));
    }
    let model = state
        .model()
        .ok_or_else(|| RequestFailure::internal_error("no model", "the client has no model"))?;
    approve(state, request, &params, &*model).await?;
    let response = permit.run(model.generate(params.into_request())).await;
    let response = response.map_err(|error| model_failure(&error))?;
    let total_tokens = response.usage.map(|usage| usage.total_tokens());
    let text = response.message.visible_text();
    let stop_reason = stop_reason(&response)?;
    let model = response.model.as_deref().unwrap_or_else(|| model.model());
    let result = json!({
        "role": "assistant",
        "content": {"type": "text", "text": text},
        "model": model,
        "stopReason": stop_reason,
    });
    audit.record_response(text, total_tokens);
    Ok(RequestAnswer { outcome: RequestOutcome::Answered, result })
}

/// Obtains the consent of the settings or of the user.
async fn approve(
    state: &HandlerState,
    request: &ServerRequest,
    params: &SamplingParams,
    model: &dyn LlmProvider,
) -> Result<(), RequestFailure> {
    let prompter = match (state.settings.sampling, &state.settings.prompter) {
        (ApprovalPolicy::AllowAll, _) => return Ok(()),
        (ApprovalPolicy::Ask | ApprovalPolicy::AskAll, Some(prompter)) => prompter,
        (ApprovalPolicy::Ask | ApprovalPolicy::AskAll, None) => {
            return Err(RequestFailure::denial(
                "no user interface",
                "no user can approve sampling",
            ));
        }
        (ApprovalPolicy::DenyAll, _) => {
            return Err(RequestFailure::denial("settings", "the settings deny sampling"));
        }
    };
    let question = SamplingRequest {
        server: &request.server,
        call: &request.call,
        provider: model.name(),
        model: model.model(),
        system: &params.system,
        messages: &params.messages,
        max_tokens: params.max_tokens,
    };
    match prompter.approve_sampling(question).await {
        ApprovalDecision::Approve => Ok(()),
        ApprovalDecision::ApproveWith(_) => Err(RequestFailure::denial(
            "the user changed the request",
            "a request for a message of the model cannot be changed",
        )),
        ApprovalDecision::Deny(reason) => Err(RequestFailure::denial("the user denied", reason)),
    }
}

/// Returns the reason for the end of a response in the terms of MCP.
fn stop_reason(response: &Response) -> Result<&str, RequestFailure> {
    match &response.finish_reason {
        FinishReason::Stop => Ok("endTurn"),
        FinishReason::Length | FinishReason::ContextFull => Ok("maxTokens"),
        FinishReason::Refusal => Ok("refusal"),
        FinishReason::Other(reason) => Ok(reason),
        FinishReason::ToolCalls | FinishReason::MalformedToolCall | FinishReason::Paused => {
            Err(RequestFailure::internal_error(
                "incomplete response",
                "the model wrote no complete message",
            ))
        }
    }
}

/// Returns the error for the server. The message of the provider stays with the user, because it may
/// describe the user's account.
fn model_failure(error: &LlmError) -> RequestFailure {
    let reason = match error.kind {
        LlmErrorKind::RetryLater { .. } | LlmErrorKind::LocalRateLimit { .. } => "model overloaded",
        LlmErrorKind::Connection => "model not reachable",
        LlmErrorKind::TimedOut => "model timed out",
        LlmErrorKind::Authentication | LlmErrorKind::Billing | LlmErrorKind::NotFound => {
            "model not available"
        }
        LlmErrorKind::ContextLength => "messages too long for the model",
        LlmErrorKind::Refusal => "model refused the request",
        LlmErrorKind::InvalidRequest | LlmErrorKind::ToolsUnsupported => {
            "model rejected the request"
        }
        LlmErrorKind::MalformedToolCall | LlmErrorKind::InvalidResponse => {
            "invalid response of the model"
        }
    };
    RequestFailure::internal_error(reason, reason)
}
