//! The script of a model: one reply per request.

mod json;

use std::borrow::Borrow;

use bytes::Bytes;
use serde_json::{Value, json};

/// A script: replies and settings of a scripted model.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(super) replies: Vec<ScriptedReply>,
    pub(super) repeated_reply: Option<ScriptedReply>,
    pub(super) chunk_bytes: Option<usize>,
    pub(super) models: Vec<String>,
    pub(super) props: Option<Value>,
}

impl Script {
    /// Creates a script with one reply per request to a model's path, in order. Further requests
    /// get status 500.
    #[must_use]
    pub fn new(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let models = vec!["scripted".to_owned()];
        Self { replies: replies.into_iter().collect(), models, ..Self::default() }
    }

    /// Parses a script in JSON. The keys are the names of the methods of this type and of
    /// [`ScriptedReply`]; the content is in `parts`.
    ///
    /// # Errors
    ///
    /// The position and the reason of the first error.
    pub fn from_json(text: &str) -> Result<Self, String> {
        json::parse(text)
    }

    /// Sets the chunk size of streamed bodies in bytes; `usize::MAX` sends the whole body at once.
    /// Default: one chunk per event.
    ///
    /// # Panics
    ///
    /// If `bytes` is zero.
    #[must_use]
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        assert!(bytes > 0, "the chunk size must be at least one byte");
        self.chunk_bytes = Some(bytes);
        self
    }

    /// Responds to each request after the last reply with `reply`.
    #[must_use]
    pub fn then_repeat(mut self, reply: ScriptedReply) -> Self {
        self.repeated_reply = Some(reply);
        self
    }

    /// Sets the names in model lists. Default: `scripted`.
    #[must_use]
    pub fn models(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.models = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the response to `GET /props`. Default: status 404.
    #[must_use]
    pub fn props(mut self, body: Value) -> Self {
        self.props = Some(body);
        self
    }

    /// Sets a response to `GET /props` in llama.cpp's format, with these capabilities of the chat
    /// template.
    #[must_use]
    pub fn chat_template_caps(self, caps: &Value) -> Self {
        self.props(json!({
            "default_generation_settings": {"n_ctx": 8192},
            "total_slots": 1,
            "model_path": "scripted.gguf",
            "chat_template": "{{ messages }}",
            "chat_template_caps": caps,
            "build_info": "b10000-scripted",
        }))
    }
}

impl From<ScriptedReply> for Script {
    fn from(reply: ScriptedReply) -> Self {
        Self::new([reply])
    }
}

impl From<Vec<ScriptedReply>> for Script {
    fn from(replies: Vec<ScriptedReply>) -> Self {
        Self::new(replies)
    }
}

impl<const N: usize> From<[ScriptedReply; N]> for Script {
    fn from(replies: [ScriptedReply; N]) -> Self {
        Self::new(replies)
    }
}

/// The reply to one request.
#[derive(Clone, Debug)]
pub struct ScriptedReply {
    pub(super) kind: ReplyKind,
    pub(super) headers: Vec<(String, String)>,
    pub(super) ending: BodyEnding,
}

#[derive(Clone, Debug)]
pub(super) enum ReplyKind {
    Model(ModelReply),
    Error { status: u16, code: Option<String>, message: String },
    Raw { status: u16, content_type: String, bytes: Bytes },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyEnding {
    Complete,
    Disconnect(usize),
    StallAfter(usize),
    NeverRespond,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ModelReply {
    pub(super) parts: Vec<ReplyPart>,
    pub(super) usage: ReplyUsage,
    pub(super) truncated: bool,
    pub(super) refused: bool,
    pub(super) stream_error: Option<String>,
}

/// The usage that a response reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplyUsage {
    /// The input and output tokens; counted from the texts by default.
    pub(super) tokens: Option<(u64, u64)>,
    pub(super) is_hidden: bool,
    pub(super) cached_tokens: u64,
    pub(super) reasoning_tokens: u64,
    pub(super) cost: Option<f64>,
}

#[derive(Clone, Debug)]
pub(super) enum ReplyPart {
    Reasoning(String),
    Text(String),
    ToolCall { name: String, arguments: String },
}

impl Default for ScriptedReply {
    fn default() -> Self {
        Self::new()
    }
}

impl ScriptedReply {
    fn from_kind(kind: ReplyKind) -> Self {
        Self { kind, headers: Vec::new(), ending: BodyEnding::Complete }
    }

    /// Creates an empty response. Content keeps the order of the method calls, where the API has an
    /// order.
    #[must_use]
    pub fn new() -> Self {
        Self::from_kind(ReplyKind::Model(ModelReply::default()))
    }

    /// Creates a response that starts with a text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().with_text(text)
    }

    /// Creates a response that starts with reasoning.
    #[must_use]
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::new().with_reasoning(text)
    }

    /// Creates a response that starts with a tool call.
    #[must_use]
    pub fn tool_call(name: impl Into<String>, arguments: impl Borrow<Value>) -> Self {
        Self::new().with_tool_call(name, arguments)
    }

    /// Creates an error response with this status, in the provider's format.
    #[must_use]
    pub fn status(status: u16) -> Self {
        let message = format!("scripted status {status}");
        Self::from_kind(ReplyKind::Error { status, code: None, message })
    }

    /// Creates a response with raw bytes.
    #[must_use]
    pub fn raw(status: u16, content_type: &str, bytes: impl Into<Bytes>) -> Self {
        let content_type = content_type.to_owned();
        Self::from_kind(ReplyKind::Raw { status, content_type, bytes: bytes.into() })
    }

    /// Adds visible text.
    ///
    /// # Panics
    ///
    /// This method and the following ones up to [`Self::with_stream_error`]: if the reply is not a
    /// response of the model.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.model_reply_mut().parts.push(ReplyPart::Text(text.into()));
        self
    }

    /// Adds reasoning.
    #[must_use]
    pub fn with_reasoning(mut self, text: impl Into<String>) -> Self {
        self.model_reply_mut().parts.push(ReplyPart::Reasoning(text.into()));
        self
    }

    /// Adds a tool call. The call has the name of the offered tool that matches this name (both
    /// names with `_` for every character except letters, digits, `_` and `-`), else this name.
    #[must_use]
    pub fn with_tool_call(self, name: impl Into<String>, arguments: impl Borrow<Value>) -> Self {
        self.with_raw_tool_call(name, arguments.borrow().to_string())
    }

    /// Adds a tool call with arbitrary argument text.
    ///
    /// The OpenAI APIs send text that is not a JSON object unchanged; Anthropic's and Interactions
    /// do so in streams, and send an empty object without streaming. Gemini reports a malformed
    /// call, Ollama fails with status 500.
    #[must_use]
    pub fn with_raw_tool_call(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.model_reply_mut()
            .parts
            .push(ReplyPart::ToolCall { name: name.into(), arguments: text.into() });
        self
    }

    /// Sets the prompt and completion tokens, including cached and reasoning tokens. Default: one
    /// token per four bytes.
    #[must_use]
    pub fn with_usage(mut self, prompt: u64, completion: u64) -> Self {
        self.model_reply_mut().usage.tokens = Some((prompt, completion));
        self
    }

    /// Reports no token counts.
    #[must_use]
    pub fn without_usage(mut self) -> Self {
        self.model_reply_mut().usage.is_hidden = true;
        self
    }

    /// Sets the number of cached prompt tokens. Default: none.
    #[must_use]
    pub fn with_cached_tokens(mut self, tokens: u64) -> Self {
        self.model_reply_mut().usage.cached_tokens = tokens;
        self
    }

    /// Sets the number of reasoning tokens. Default: none.
    #[must_use]
    pub fn with_reasoning_tokens(mut self, tokens: u64) -> Self {
        self.model_reply_mut().usage.reasoning_tokens = tokens;
        self
    }

    /// Sets the cost that the OpenAI APIs report. Default: none.
    #[must_use]
    pub fn with_cost(mut self, cost: f64) -> Self {
        self.model_reply_mut().usage.cost = Some(cost);
        self
    }

    /// Marks the response as truncated at the token limit.
    #[must_use]
    pub fn truncated(mut self) -> Self {
        self.model_reply_mut().truncated = true;
        self
    }

    /// Marks the response as refused. Ollama has no such value.
    #[must_use]
    pub fn refused(mut self) -> Self {
        self.model_reply_mut().refused = true;
        self
    }

    /// Adds the provider's error event at the end of a stream; without streaming, the response has
    /// status 500.
    #[must_use]
    pub fn with_stream_error(mut self, message: impl Into<String>) -> Self {
        self.model_reply_mut().stream_error = Some(message.into());
        self
    }

    /// Sets the message of an error response.
    ///
    /// # Panics
    ///
    /// This method and [`Self::with_error_code`]: if the reply is not an error response.
    #[must_use]
    pub fn with_error_message(mut self, text: impl Into<String>) -> Self {
        let ReplyKind::Error { message, .. } = &mut self.kind else {
            panic!("`ScriptedReply::status` is required before `with_error_message`")
        };
        *message = text.into();
        self
    }

    /// Sets the provider's error code instead of the code of the status.
    #[must_use]
    pub fn with_error_code(mut self, error_code: impl Into<String>) -> Self {
        let ReplyKind::Error { code, .. } = &mut self.kind else {
            panic!("`ScriptedReply::status` is required before `with_error_code`")
        };
        *code = Some(error_code.into());
        self
    }

    /// Adds a response header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Closes the connection after this many bytes of the body.
    #[must_use]
    pub fn disconnect_after(mut self, bytes: usize) -> Self {
        self.ending = BodyEnding::Disconnect(bytes);
        self
    }

    /// Never responds.
    #[must_use]
    pub fn never_responds(mut self) -> Self {
        self.ending = BodyEnding::NeverRespond;
        self
    }

    /// Sends the head and this many bytes of the body, then nothing more.
    #[must_use]
    pub fn stall_after(mut self, bytes: usize) -> Self {
        self.ending = BodyEnding::StallAfter(bytes);
        self
    }

    fn model_reply_mut(&mut self) -> &mut ModelReply {
        match &mut self.kind {
            ReplyKind::Model(reply) => reply,
            ReplyKind::Error { .. } | ReplyKind::Raw { .. } => {
                panic!("an error response or raw bytes cannot have content")
            }
        }
    }
}
