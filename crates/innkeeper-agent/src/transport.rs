//! Models over HTTP: the only module that sends requests to models.
//!
//! [`get_llm_client`] selects a provider by name. [`HttpProvider`] encodes a request, sends the
//! request and decodes the response, with a deadline, size limits, the retry hints of the server, and
//! masks over API keys in errors.

// The provider sends through the private trait `HttpClient`, whose implementation is one file,
// `reqwest_client.rs`. Everything that every client needs stays above the trait.

mod client;
mod endpoint;
mod error;
mod headers;
#[cfg(test)]
pub(crate) mod in_memory;
mod model_rules;
mod probe;
mod provider;
mod provider_id;
mod reqwest_client;
mod response_body;
mod response_stream;
#[cfg(test)]
mod tests;

pub use crate::provider::DEFAULT_RESPONSE_TIMEOUT;
pub(crate) use client::{
    ChunkStream, HttpClient, HttpError, HttpErrorSource, IncomingResponse, OutgoingRequest,
};
pub use endpoint::Endpoint;
pub use model_rules::{ModelRule, PromptCondition, choose_model};
pub use provider::HttpProvider;
pub use provider_id::{ModelLookupError, ModelSelector, ProviderId, get_llm_client};
