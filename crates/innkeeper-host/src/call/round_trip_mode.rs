//! The modes of multi-round-trip requests.

use serde_json::value::RawValue;

/// How a call handles a result that requests input (`input_required`, modern era).
#[derive(Clone, Debug, Default)]
pub enum RoundTripMode {
    /// The host calls the callbacks and sends the request again with their responses.
    #[default]
    Callback,
    /// The host calls no callback and returns the result as the server sent it. The application
    /// sends the request again with responses. Applies to `tools/call`, `prompts/get` and
    /// `resources/read`.
    PassThrough {
        /// The member `inputResponses` of the request, byte for byte.
        input_responses: Option<Box<RawValue>>,
        /// The member `requestState` of the request, byte for byte.
        request_state: Option<Box<RawValue>>,
    },
}
