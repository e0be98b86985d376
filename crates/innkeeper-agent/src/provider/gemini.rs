//! Shared parts of Gemini's two APIs.

mod error;

use super::ToolChoice;
use super::codec::EncodeRequest;

pub(crate) use error::{decode_error, decode_error_object};

/// Placeholder for the signature of a call that this model did not make. The provider documents the
/// value as the last resort for histories of other models.
pub(crate) const PLACEHOLDER_SIGNATURE: &str = "skip_thought_signature_validator";

/// Returns the model name without its resource prefix.
pub(crate) fn model_name(model: &str) -> &str {
    model.strip_prefix("models/").unwrap_or(model)
}

/// Returns whether the model may or must call functions.
pub(crate) fn calling_mode(encode_request: EncodeRequest<'_>) -> &'static str {
    let EncodeRequest { request, capabilities, .. } = encode_request;
    match request.tool_choice {
        ToolChoice::None => "none",
        ToolChoice::Required if capabilities.tools.forced_choice => "any",
        ToolChoice::Auto | ToolChoice::Required if capabilities.quirks.gemini.validated_mode => {
            "validated"
        }
        ToolChoice::Auto | ToolChoice::Required => "auto",
    }
}
