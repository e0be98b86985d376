//! Models over HTTP, the only module of this crate that sends requests.
//!
//! [`HttpProvider`] encodes a request and decodes the response. The provider sends through a
//! private trait, `HttpClient`, whose implementation is one file, `transport/reqwest_client.rs`.
//! Everything that every client needs stays above the trait: authentication, deadlines, size
//! limits, retry hints, and the masks over API keys in errors.

mod client;
mod endpoint;
mod error;
mod headers;
#[cfg(test)]
pub(crate) mod in_memory;
mod probe;
mod provider;
mod provider_id;
mod reqwest_client;
mod response_body;
mod response_stream;
#[cfg(test)]
mod tests;

pub use endpoint::{DEFAULT_RESPONSE_TIMEOUT, Endpoint};
pub use provider::HttpProvider;
pub use provider_id::{ModelLookupError, ModelSelector, ProviderId, get_llm_client};
