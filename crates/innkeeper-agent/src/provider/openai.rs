//! Shared parts of OpenAI's two codecs.

mod brace_tracker;
mod error;
mod object_builder;
mod schema;
mod stream;

use serde::Serialize;

use super::ToolChoice;
use super::codec::EncodeRequest;
use super::tool_encoding::EncodedTool;

pub(super) use brace_tracker::BraceTracker;
pub(super) use error::{decode_error, decode_error_object};
pub(super) use object_builder::{ObjectBuilder, to_raw};
pub(super) use schema::is_strict;
pub(super) use stream::{EventAccumulator, StreamDecoder};

/// The parameters about tools; `T` is a tool as the API takes it.
#[derive(Serialize)]
pub(super) struct ToolParams<T> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

impl<T> ToolParams<T> {
    pub(super) fn new<'r>(
        encode_request: EncodeRequest<'r>,
        encode_tool: fn(&'r EncodedTool) -> T,
    ) -> Self {
        let support = encode_request.capabilities.tools;
        let tools = encode_request.encoded_tools.as_slice();
        if !support.native || tools.is_empty() {
            return Self { tools: Vec::new(), tool_choice: None };
        }
        let tool_choice = match &encode_request.request.tool_choice {
            ToolChoice::None => Some("none"),
            ToolChoice::Required if support.forced_choice => Some("required"),
            ToolChoice::Auto | ToolChoice::Required => None,
        };
        Self { tools: tools.iter().map(encode_tool).collect(), tool_choice }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}

/// The name of a document; the APIs require one.
pub(super) const DOCUMENT_NAME: &str = "document.pdf";
