//! Decodes a complete response object.

use super::output_item::OutputItem;
use crate::conversation::{AssistantMessage, ContentPart, PartContent};
use crate::provider::codec::{ApiError, MAX_CONTENT_PARTS, ObjectView};
use crate::provider::openai::decode_error_object;
use crate::provider::{Cost, FinishReason, LlmErrorKind, Response, Usage};

pub(super) fn decode_body(model: &str, body: &str) -> Result<Response, ApiError> {
    let fields = ObjectView::parse(body);
    let fields =
        fields.ok_or_else(|| ApiError::invalid_response("the response is not a JSON object"))?;
    let end = ResponseEnd::from_response(&fields, "completed")?;
    if fields.get("output").is_none() {
        return Err(ApiError::invalid_response("the response has no `output`"));
    }
    let output = fields.list("output").unwrap_or_default();
    if output.len() > MAX_CONTENT_PARTS {
        return Err(ApiError::too_many("items"));
    }
    let mut parts = Vec::new();
    let mut has_refusal = false;
    for block in output {
        let Some(item) = OutputItem::decode(block, model)? else { continue };
        has_refusal |= item.is_refusal;
        parts.push(item.part);
    }
    Ok(end.into_response(parts, has_refusal))
}

/// The end of a response: reason, usage and model.
pub(super) struct ResponseEnd {
    /// The finish reason of an incomplete response; `None` if the response is complete.
    incomplete_reason: Option<FinishReason>,
    usage: Option<Usage>,
    response_model: Option<String>,
}

impl ResponseEnd {
    /// Decodes a response object. The last argument is the status of an object without one.
    ///
    /// # Errors
    ///
    /// The response failed or is not complete.
    pub(super) fn from_response(fields: &ObjectView<'_>, status: &str) -> Result<Self, ApiError> {
        let status = fields.non_empty_text("status").unwrap_or_else(|| status.to_owned());
        let is_error = fields.text("object").is_some_and(|object| object == "error");
        if is_error || status == "failed" || fields.get("error").is_some() {
            return Err(decode_error_object(fields));
        }
        let incomplete_reason = match status.as_str() {
            "completed" => None,
            "incomplete" => {
                let details = fields.object("incomplete_details").unwrap_or_default();
                Some(match details.non_empty_text("reason").as_deref() {
                    Some("max_output_tokens") => FinishReason::Length,
                    Some("content_filter") => FinishReason::Refusal,
                    other => FinishReason::Other(other.unwrap_or("incomplete").to_owned()),
                })
            }
            "cancelled" => {
                let kind = LlmErrorKind::RetryLater { after: None };
                return Err(ApiError::new(kind, "the provider cancelled the response"));
            }
            other => {
                let message = format!("the response is not complete: status `{other}`");
                return Err(ApiError::invalid_response(message));
            }
        };
        let usage = fields.object("usage").and_then(|usage| parse_usage(&usage));
        Ok(Self { incomplete_reason, usage, response_model: fields.non_empty_text("model") })
    }

    pub(super) fn into_response(self, parts: Vec<ContentPart>, is_refusal: bool) -> Response {
        let calls = parts.iter().any(|part| matches!(part.content, PartContent::ToolCall(_)));
        let finish_reason = self.incomplete_reason.unwrap_or(if calls {
            FinishReason::ToolCalls
        } else if is_refusal {
            FinishReason::Refusal
        } else {
            FinishReason::Stop
        });
        Response {
            message: AssistantMessage { parts },
            finish_reason,
            usage: self.usage,
            model: self.response_model,
        }
    }
}

fn parse_usage(usage: &ObjectView<'_>) -> Option<Usage> {
    let input = usage.number("input_tokens");
    let output = usage.number("output_tokens");
    if input.is_none() && output.is_none() {
        return None;
    }
    let read = usage.object("input_tokens_details").unwrap_or_default();
    let output_details = usage.object("output_tokens_details").unwrap_or_default();
    let counted = Usage {
        prompt_tokens: input.unwrap_or_default(),
        completion_tokens: output.unwrap_or_default(),
        cached_tokens: read.number("cached_tokens").unwrap_or_default(),
        reasoning_tokens: output_details.number("reasoning_tokens").unwrap_or_default(),
        cost: usage.get("cost").and_then(|cost| Cost::from_json_number(cost.get())),
    };
    Some(counted.with_cached_tokens_included())
}
