//! Encodes requests with the tools that the capabilities demand, for tests and the fuzzer.

use super::{EncodeRequest, HttpRequest, encode};
use crate::provider::tool_encoding::EncodedTools;
use crate::provider::{Capabilities, ProviderApi, Request};

/// Encodes a request for a model with these capabilities.
///
/// # Panics
///
/// If the request cannot be encoded.
pub(crate) fn encode_request(
    api: ProviderApi,
    request: &Request,
    model: &str,
    capabilities: &Capabilities,
    streaming: bool,
) -> HttpRequest {
    let strict = capabilities.tools.strict && !request.plain_tools;
    let encoded_tools = EncodedTools::new(request.tools.clone(), api, strict);
    let encode_request =
        EncodeRequest { request, encoded_tools: &encoded_tools, model, capabilities, streaming };
    encode(api, encode_request).expect("a body")
}

/// Returns the body of the unstreamed request as text.
#[cfg(test)]
pub(crate) fn encode_body(
    api: ProviderApi,
    request: &Request,
    model: &str,
    capabilities: &Capabilities,
) -> String {
    String::from_utf8(encode_request(api, request, model, capabilities, false).body).unwrap()
}
