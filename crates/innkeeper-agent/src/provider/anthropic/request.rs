//! Encodes a request for the Messages API.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;

use innkeeper_toolcall::{Dialect, SchemaLossKind, lower_schema};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::content::{Content, Media, MediaKind, Segment};
use crate::conversation::{
    AssistantMessage, ContentPart, Message, PartContent, ToolCall, ToolResult,
};
use crate::provider::codec::{ApiError, EncodeRequest, HttpRequest, ObjectView, arguments_object};
use crate::provider::{ProviderApi, ToolChoice};

const VERSION: &str = "2026-10-21";
const VERSION_2023: &str = "2023-06-01";

/// Beta header; the API rejects `block_binding` without it.
const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

/// Default of `max_tokens`; every model supports this number.
const DEFAULT_MAX_TOKENS: u32 = 4096;

/// The text of a failed tool result that has no text; the API rejects an empty failed result.
const EMPTY_FAILURE_MESSAGE: &str = "the tool failed without a message";

/// Maximum temperature of this API.
const MAX_TEMPERATURE: f64 = 1.0;

#[derive(Serialize)]
struct RequestBody<'r> {
    model: &'r str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<System<'r>>,
    messages: Vec<MessageParam<'r>>,
    #[serde(flatten)]
    tools: ToolParams<'r>,
    #[serde(flatten)]
    generation: GenerationParams<'r>,
    /// The provider caches the request up to its last block, which the next request of the
    /// conversation contains too.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
    #[serde(skip_serializing_if = "is_false")]
    stream: bool,
}

#[derive(Serialize)]
struct ToolParams<'r> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoiceParam>,
}

/// How the model generates its response.
#[derive(Serialize)]
struct GenerationParams<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum System<'r> {
    Text(&'r str),
    Cached([CachedTextBlock<'r>; 1]),
}

#[derive(Serialize)]
struct CachedTextBlock<'r> {
    r#type: &'static str,
    text: &'r str,
    cache_control: CacheControl,
}

/// A cache breakpoint. The provider caches the request up to and including the marked object, in
/// the order tools, system text, messages.
#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
}

/// A cache entry that lives five minutes after its last use.
const EPHEMERAL: CacheControl = CacheControl { r#type: "ephemeral" };

#[derive(Serialize)]
struct MessageParam<'r> {
    role: &'static str,
    content: Vec<ContentBlockParam<'r>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentBlockParam<'r> {
    Text {
        text: Cow<'r, str>,
    },
    Image {
        source: Base64Source<'r>,
    },
    Document {
        source: Base64Source<'r>,
    },
    ToolUse {
        id: String,
        name: String,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: String,
        content: ResultContent<'r>,
        #[serde(skip_serializing_if = "is_false")]
        is_error: bool,
    },
    /// The block as the model sent it.
    #[serde(untagged)]
    Verbatim(&'r RawValue),
}

/// The content of a tool result: text, or blocks if there are media.
#[derive(Serialize)]
#[serde(untagged)]
enum ResultContent<'r> {
    Text(Cow<'r, str>),
    Blocks(Vec<ContentBlockParam<'r>>),
}

#[derive(Serialize)]
struct Base64Source<'r> {
    r#type: &'static str,
    media_type: &'r str,
    data: &'r str,
}

#[derive(Serialize)]
struct Tool<'r> {
    name: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'r str,
    input_schema: &'r Value,
    #[serde(skip_serializing_if = "is_false")]
    strict: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct ToolChoiceParam {
    r#type: &'static str,
}

/// The `thinking` parameter. Models that bind reasoning always use adaptive thinking. The request
/// sets the type only because `block_binding` is a field of this object.
#[derive(Serialize)]
struct Thinking {
    r#type: &'static str,
    block_binding: BlockBinding,
}

#[derive(Serialize)]
struct BlockBinding {
    prefix_mismatch_behavior: &'static str,
}

#[derive(Serialize)]
struct OutputConfig {
    format: OutputFormat,
}

#[derive(Serialize)]
struct OutputFormat {
    r#type: &'static str,
    schema: Value,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

pub(super) fn encode(encode_request: EncodeRequest<'_>) -> Result<HttpRequest, ApiError> {
    let EncodeRequest { request, model, capabilities, streaming, .. } = encode_request;
    let keep = request.prompt_caching && capabilities.quirks.cache_control;
    let mut tools = tools(encode_request);
    let system = system(&request.system, keep);
    if let (true, None, Some(last)) = (keep, &system, tools.last_mut()) {
        last.cache_control = Some(EPHEMERAL);
    }
    let stop_sequences = request.stop_sequences.iter().map(String::as_str);
    let generation = GenerationParams {
        temperature: encode_request
            .temperature()
            .map(|temperature| temperature.min(MAX_TEMPERATURE)),
        // The API rejects a blank stop sequence.
        stop_sequences: stop_sequences
            .filter(|sequence| capabilities.stop_sequences && !sequence.trim().is_empty())
            .collect(),
        thinking: capabilities.quirks.drop_unbound_thinking.then_some(Thinking {
            r#type: "adaptive",
            block_binding: BlockBinding { prefix_mismatch_behavior: "drop_block" },
        }),
        output_config: output_config(encode_request),
    };
    let body = RequestBody {
        model,
        max_tokens: request
            .max_tokens
            .or(capabilities.tokens.default_output)
            .unwrap_or(DEFAULT_MAX_TOKENS),
        system,
        messages: messages(encode_request),
        tools: ToolParams {
            tool_choice: tool_choice(encode_request).filter(|_| !tools.is_empty()),
            tools,
        },
        generation,
        cache_control: keep.then_some(EPHEMERAL),
        stream: streaming,
    };
    let version = if capabilities.quirks.api_version_2023 { VERSION_2023 } else { VERSION };
    let mut headers = vec![("anthropic-version", version.to_owned())];
    if capabilities.quirks.drop_unbound_thinking {
        headers.push(("anthropic-beta", BINDING_BETA.to_owned()));
    }
    Ok(HttpRequest { headers, ..HttpRequest::new("/v1/messages", &body)? })
}

/// Returns `None` for a blank system text, which the API rejects.
fn system(text: &str, keep: bool) -> Option<System<'_>> {
    if text.trim().is_empty() {
        None
    } else if keep {
        Some(System::Cached([CachedTextBlock { r#type: "text", text, cache_control: EPHEMERAL }]))
    } else {
        Some(System::Text(text))
    }
}

fn tools(encode_request: EncodeRequest<'_>) -> Vec<Tool<'_>> {
    if !encode_request.capabilities.tools.native {
        return Vec::new();
    }
    let available = encode_request.encoded_tools.as_slice().iter().map(|tool| Tool {
        name: &tool.alias,
        description: &tool.description,
        input_schema: tool.schema(),
        strict: encode_request.encoded_tools.strict && tool.lowered_schema.strict,
        cache_control: None,
    });
    available.collect()
}

fn tool_choice(encode_request: EncodeRequest<'_>) -> Option<ToolChoiceParam> {
    match encode_request.request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(ToolChoiceParam { r#type: "none" }),
        ToolChoice::Required => encode_request
            .capabilities
            .tools
            .forced_choice
            .then_some(ToolChoiceParam { r#type: "any" }),
    }
}

/// Returns the strict form of the schema, the only form that the API accepts. Returns `None` if
/// lowering changes the meaning of the root: an unconstrained response is better then.
fn output_config(encode_request: EncodeRequest<'_>) -> Option<OutputConfig> {
    let lowered = lower_schema(encode_request.response_schema()?, Dialect::AnthropicStrict);
    let other_root = lowered.losses.iter().any(|loss| {
        loss.pointer.is_empty()
            && matches!(loss.kind, SchemaLossKind::Replaced | SchemaLossKind::Widened)
    });
    // Nothing restores the names of the members in a response.
    if !lowered.strict || other_root || lowered.has_renamed_parameters() {
        return None;
    }
    Some(OutputConfig { format: OutputFormat { r#type: "json_schema", schema: lowered.schema } })
}

/// Merges consecutive messages of one role, as the API requires.
fn messages(encode_request: EncodeRequest<'_>) -> Vec<MessageParam<'_>> {
    let mut turns: Vec<MessageParam<'_>> = Vec::new();
    let mut verbatim = HashSet::new();
    for message in &encode_request.request.messages {
        let (role, content) = match message {
            Message::User(content) => ("user", content_blocks(content)),
            Message::Assistant(assistant) => {
                ("assistant", assistant_blocks(encode_request, assistant, &mut verbatim))
            }
            Message::ToolResults(results) => {
                ("user", results.iter().map(|result| result_block(result, &verbatim)).collect())
            }
        };
        match turns.last_mut() {
            Some(last) if last.role == role => last.content.extend(content),
            // The API rejects an empty message.
            Some(_) | None if content.is_empty() => {}
            Some(_) | None => turns.push(MessageParam { role, content }),
        }
    }
    turns
}

/// Returns `None` for blank text, which the API rejects.
fn text_block<'r>(text: impl Into<Cow<'r, str>>) -> Option<ContentBlockParam<'r>> {
    let text = text.into();
    (!text.trim().is_empty()).then_some(ContentBlockParam::Text { text })
}

fn content_blocks(content: &Content) -> Vec<ContentBlockParam<'_>> {
    let blocks = content.segments().into_iter().filter_map(|segment| match segment {
        Segment::Text(text) => text_block(text),
        Segment::Media(media) => media_block(media),
    });
    blocks.collect()
}

/// Returns `None` for audio, which this API does not take.
fn media_block(media: Media<'_>) -> Option<ContentBlockParam<'_>> {
    let media_type = media.mime_type.unwrap_or_default();
    let source = Base64Source { r#type: "base64", media_type, data: media.data };
    match media.kind {
        MediaKind::Image => Some(ContentBlockParam::Image { source }),
        MediaKind::Document => Some(ContentBlockParam::Document { source }),
        MediaKind::Audio => None,
    }
}

/// Drops trailing reasoning: the API rejects an assistant message that ends with reasoning.
fn assistant_blocks<'r>(
    encode_request: EncodeRequest<'r>,
    assistant: &'r AssistantMessage,
    verbatim: &mut HashSet<&'r str>,
) -> Vec<ContentBlockParam<'r>> {
    let mut blocks = Vec::new();
    let mut end = 0;
    for part in &assistant.parts {
        let native = provider_block(encode_request, part);
        let before = blocks.len();
        match (&part.content, native) {
            (PartContent::Text(text), _) if text.trim().is_empty() => {}
            (PartContent::Text(_) | PartContent::Reasoning(_) | PartContent::Other, Some(raw)) => {
                blocks.push(ContentBlockParam::Verbatim(raw));
            }
            (PartContent::Text(text), None) => blocks.extend(text_block(text.as_str())),
            (PartContent::ToolCall(call), Some(raw)) => {
                verbatim.insert(call.id.as_str());
                blocks.push(ContentBlockParam::Verbatim(raw));
            }
            (PartContent::ToolCall(call), None) => blocks.push(call_block(encode_request, call)),
            // The API accepts reasoning only with the signature of the same model.
            (PartContent::Reasoning(_) | PartContent::Other, None) => {}
        }
        if blocks.len() > before && !matches!(part.content, PartContent::Reasoning(_)) {
            end = blocks.len();
        }
    }
    blocks.truncate(end);
    blocks
}

/// Returns the raw block of this model. Anthropic rejects reasoning that was truncated before its
/// signature, so such a block is dropped. Other servers do not sign reasoning and accept such a
/// block.
fn provider_block<'r>(
    encode_request: EncodeRequest<'r>,
    part: &'r ContentPart,
) -> Option<&'r RawValue> {
    let raw =
        part.provider_block.as_ref()?.for_model(ProviderApi::Anthropic, encode_request.model)?;
    if matches!(part.content, PartContent::Reasoning(_))
        && !encode_request.capabilities.quirks.api_version_2023
    {
        let block = ObjectView::from_raw(raw)?;
        let unsigned = block.text("signature").is_none_or(|signature| signature.is_empty());
        if unsigned && block.text("type").as_deref() == Some("thinking") {
            return None;
        }
    }
    Some(raw)
}

fn call_block<'r>(encode_request: EncodeRequest<'r>, call: &ToolCall) -> ContentBlockParam<'r> {
    let name = encode_request.encoded_tools.alias(&call.name);
    ContentBlockParam::ToolUse {
        id: sanitize_id(&call.id),
        name,
        input: arguments_object(&call.arguments),
    }
}

fn result_block<'r>(result: &'r ToolResult, verbatim: &HashSet<&str>) -> ContentBlockParam<'r> {
    let is_verbatim = verbatim.contains(result.id.as_str());
    let content = if result.content.has_media() {
        ResultContent::Blocks(content_blocks(&result.content))
    } else {
        let text = result.content.to_text();
        let is_empty_failure = result.is_error && text.trim().is_empty();
        ResultContent::Text(if is_empty_failure { EMPTY_FAILURE_MESSAGE.into() } else { text })
    };
    ContentBlockParam::ToolResult {
        tool_use_id: if is_verbatim { result.id.clone() } else { sanitize_id(&result.id) },
        content,
        is_error: result.is_error,
    }
}

/// Escapes the characters of another provider's id that this API does not allow in ids.
fn sanitize_id(id: &str) -> String {
    let mut spelled = String::with_capacity(id.len());
    for character in id.chars() {
        if character.is_ascii_alphanumeric() || matches!(character, '_' | '-') {
            spelled.push(character);
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(spelled, "-{:x}-", u32::from(character));
        }
    }
    spelled
}
