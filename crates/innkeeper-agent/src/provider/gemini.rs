//! Model names, errors and the placeholder signature of Gemini's two APIs.

mod error;

pub(crate) use error::{decode_error, decode_error_object};

/// Placeholder for the signature of a call that this model did not make. The provider documents the
/// value as the last resort for histories of other models.
pub(crate) const PLACEHOLDER_SIGNATURE: &str = "skip_thought_signature_validator";

/// Returns the model name without its resource prefix.
pub(crate) fn model_name(model: &str) -> &str {
    model.strip_prefix("models/").unwrap_or(model)
}
