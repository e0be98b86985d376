//! What both of Gemini's interfaces share: names of models, failures, and the word for no signature.

mod fault;

pub(crate) use fault::{fault, fault_of};

/// The word that stands for the signature of a call that this model did not make. The provider's
/// documents name it as the last resort for histories of other models.
pub(crate) const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// A model's name without the folder it is listed under.
pub(crate) fn model_name(model: &str) -> &str {
    model.strip_prefix("models/").unwrap_or(model)
}
