//! Decodes errors of OpenAI's APIs, also of other servers.

use crate::provider::LlmErrorKind;
use crate::provider::codec::{ApiError, ObjectView, kind_from_status, parse_array, texts_of_field};

/// Decodes an HTTP error response.
pub(in crate::provider) fn decode_error(status: u16, body: &[u8]) -> ApiError {
    let text = String::from_utf8_lossy(body);
    let object = ObjectView::parse(&text).or_else(|| {
        // Google's servers wrap the object in an array.
        parse_array(&text)?.first().copied().and_then(ObjectView::from_raw)
    });
    let details = object.map(|fields| ErrorDetails::from_response(&fields)).unwrap_or_default();
    let mut error = details.into_api_error(Some(status));
    if error.message.is_empty() {
        let message = text.trim();
        let message = if message.is_empty() { "no error message" } else { message };
        error = ApiError {
            kind: error.kind,
            partial_output: error.partial_output,
            ..ApiError::new(error.kind, message)
        };
    }
    error
}

/// Decodes an error object in a response with status 200: a body, an event or a choice.
pub(in crate::provider) fn decode_error_object(fields: &ObjectView<'_>) -> ApiError {
    let mut error = ErrorDetails::from_response(fields).into_api_error(None);
    if error.message.is_empty() {
        error.message.push_str("the response reports an error without a message");
    }
    error
}

/// The fields of an error object of any server.
#[derive(Default)]
struct ErrorDetails {
    message: String,
    code: String,
    error_type: String,
    param: String,
    /// The HTTP status in the field `code` or `status`.
    status: Option<u16>,
    /// The model's output before the error.
    partial_output: Option<String>,
    /// Whether the provider's moderation rejected the request.
    is_moderated: bool,
}

impl ErrorDetails {
    fn from_response(fields: &ObjectView<'_>) -> Self {
        if let Some(error) = fields.object("error") {
            return Self::from_error_object(&error);
        }
        let mut details = Self::from_error_object(fields);
        if let Some(error) = fields.non_empty_text("error") {
            details.message = error;
        }
        if details.message.is_empty() {
            details.message = fastapi_detail(fields);
        }
        details
    }

    fn from_error_object(fields: &ObjectView<'_>) -> Self {
        let status = fields.number("code").or_else(|| fields.number("status"));
        let metadata = fields.object("metadata").unwrap_or_default();
        let mut message = fields.non_empty_text("message").unwrap_or_default();
        if let Some(raw) = metadata.non_empty_text("raw") {
            // The message of OpenRouter's upstream provider; OpenRouter's own message is generic.
            message = format!("{message}: {raw}");
        }
        Self {
            message,
            code: fields.non_empty_text("code").unwrap_or_default(),
            error_type: fields.non_empty_text("type").unwrap_or_default(),
            param: fields.non_empty_text("param").unwrap_or_default(),
            status: status
                .and_then(|number| u16::try_from(number).ok())
                .filter(|status_code| *status_code >= 400),
            partial_output: fields.non_empty_text("failed_generation"),
            is_moderated: metadata.get("reasons").is_some(),
        }
    }

    fn into_api_error(self, status: Option<u16>) -> ApiError {
        let kind = self.error_kind(status);
        let malformed = kind == LlmErrorKind::MalformedToolCall;
        let partial_output = malformed
            .then(|| self.partial_output.or_else(|| raw_tool_call(&self.message)))
            .flatten();
        ApiError { partial_output, ..ApiError::new(kind, self.message) }
    }

    fn error_kind(&self, status: Option<u16>) -> LlmErrorKind {
        if self.is_moderated {
            return LlmErrorKind::Refusal;
        }
        for code in [&self.code, &self.error_type] {
            if let Some((_, llm_kind)) =
                KINDS_BY_CODE.iter().find(|(codes, _)| codes.contains(&code.as_str()))
            {
                return *llm_kind;
            }
        }
        if self.param == "tools" && self.code.starts_with("unsupported") {
            return LlmErrorKind::ToolsUnsupported;
        }
        // An item of the conversation is missing, not the model.
        if self.param == "input" {
            return LlmErrorKind::InvalidRequest;
        }
        let message = self.message.to_ascii_lowercase().replace('`', "");
        let by_phrase = KINDS_BY_PHRASE
            .iter()
            .find(|(phrases, _)| phrases.iter().any(|phrase| message.contains(phrase)));
        if let Some((_, llm_kind)) = by_phrase {
            return *llm_kind;
        }
        if self.error_type == "not_supported_error" {
            return LlmErrorKind::InvalidRequest;
        }
        if let Some(status) = status.or(self.status) {
            return kind_from_status(status);
        }
        let kind = self.error_type.to_ascii_lowercase();
        if kind.contains("invalid_request") || kind.contains("badrequest") {
            return LlmErrorKind::InvalidRequest;
        }
        // The server accepted the request and then failed.
        LlmErrorKind::RetryLater { after: None }
    }
}

/// Error kinds by code or type, independent of the HTTP status.
const KINDS_BY_CODE: &[(&[&str], LlmErrorKind)] = &[
    (
        &[
            "insufficient_quota",
            "billing_hard_limit_reached",
            "billing_not_active",
            "insufficient_credits",
        ],
        LlmErrorKind::Billing,
    ),
    (
        &["context_length_exceeded", "exceed_context_size_error", "context_exceeded"],
        LlmErrorKind::ContextLength,
    ),
    (
        &[
            "content_filter",
            "content_policy_violation",
            "invalid_prompt",
            "bio_policy",
            "misalignment_policy_violation",
        ],
        LlmErrorKind::Refusal,
    ),
    (
        &["invalid_api_key", "authentication_error", "permission_error"],
        LlmErrorKind::Authentication,
    ),
    (&["model_not_found", "not_found_error"], LlmErrorKind::NotFound),
    (&["tool_use_failed"], LlmErrorKind::MalformedToolCall),
    (&["rate_limit_exceeded", "rate_limit_error"], LlmErrorKind::RetryLater { after: None }),
];

/// Error kinds by a phrase of the message, for servers without a specific code.
const KINDS_BY_PHRASE: &[(&[&str], LlmErrorKind)] = &[
    (
        &[
            // OpenAI, for models that call tools only over the Responses API.
            "function tools with reasoning_effort are not supported",
            // Ollama, DeepSeek and others.
            "does not support tools",
            "does not support function calling",
            // OpenAI, Groq.
            "tools is not supported",
            // Groq, DeepInfra and others.
            "tool calling is not supported",
            "tool use is not supported",
            "function calling is not supported",
            // SiliconFlow, Alibaba.
            "function call is not supported",
            "tool call is not supported",
            // Gemini.
            "function calling is not enabled",
            // Together.
            "not supported for json mode/function calling",
            // xAI.
            "does not support tool use or function calling",
            // LiteLLM.
            "does not support parameters: ['tools'",
            "does not support parameters: {'tools'",
            // llama.cpp.
            "requires --jinja",
            "unsupported param: tools",
            // OpenRouter.
            "no endpoints found that support tool use",
            // vLLM.
            "requires --enable-auto-tool-choice",
        ],
        LlmErrorKind::ToolsUnsupported,
    ),
    (
        &[
            // llama.cpp.
            "failed to parse input at pos",
            "failed to parse tool call arguments as json",
            // Ollama.
            "error parsing tool call",
        ],
        LlmErrorKind::MalformedToolCall,
    ),
    (
        &[
            // vLLM, OpenRouter and others.
            "maximum context length",
            // llama.cpp.
            "exceeds the available context size",
            "context size has been exceeded",
            // SGLang.
            "longer than the model's context length",
            // LM Studio.
            "greater than the context length",
        ],
        LlmErrorKind::ContextLength,
    ),
];

/// Returns the raw tool call if the message contains all of it, as Ollama's does. llama.cpp reports
/// only the text after the error position, which may be anywhere in the call.
fn raw_tool_call(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("error parsing tool call: raw='")?;
    let end = rest.rfind("', err=").unwrap_or(rest.len());
    Some(rest[..end].to_owned()).filter(|call| !call.is_empty())
}

/// Returns FastAPI's `detail`: a string, or a list of validation errors.
fn fastapi_detail(fields: &ObjectView<'_>) -> String {
    if let Some(text) = fields.non_empty_text("detail") {
        return text;
    }
    texts_of_field(&fields.list("detail").unwrap_or_default(), "msg").join("; ")
}

#[cfg(test)]
mod tests;
