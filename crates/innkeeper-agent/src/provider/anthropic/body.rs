//! A request in Anthropic's words.

use std::collections::HashSet;
use std::fmt::Write as _;

use innkeeper_toolcall::{Change, Dialect, fit};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation::{Answer, Message, Part, Said, ToolCall, ToolResult};
use crate::provider::codec::{Asking, Fault, Fields, Outgoing, object};
use crate::provider::{Choice, Class, Constraint, Wire};

const VERSION: &str = "2026-10-21";
const VERSION_2023: &str = "2023-06-01";

/// Without it `block_binding` is refused.
const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

/// The most tokens of an answer where nobody says it: every model can write as much.
const MAX_TOKENS: u32 = 4096;

/// The highest temperature of this wire.
const HOTTEST: f64 = 1.0;

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<System<'r>>,
    messages: Vec<Turn<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "is_false")]
    stream: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum System<'r> {
    Plain(&'r str),
    Kept([KeptText<'r>; 1]),
}

#[derive(Serialize)]
struct KeptText<'r> {
    r#type: &'static str,
    text: &'r str,
    cache_control: CacheControl,
}

/// Up to and with what this is in, the request is kept: tools, then the system text, then messages.
#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
}

/// For five minutes, which each use begins anew.
const EPHEMERAL: CacheControl = CacheControl { r#type: "ephemeral" };

#[derive(Serialize)]
struct Turn<'r> {
    role: &'static str,
    content: Vec<Block<'r>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'r> {
    Text {
        text: &'r str,
    },
    ToolUse {
        id: String,
        name: String,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: String,
        content: &'r str,
        #[serde(skip_serializing_if = "is_false")]
        is_error: bool,
    },
    /// As it came from the model.
    #[serde(untagged)]
    Native(&'r RawValue),
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
struct ToolChoice {
    r#type: &'static str,
}

/// Models that bind their thoughts think adaptively in any case; it has to be said only because the
/// behaviour stands inside of it.
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
    format: Format,
}

#[derive(Serialize)]
struct Format {
    r#type: &'static str,
    schema: Value,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_false(it: &bool) -> bool {
    !it
}

pub(super) fn encode(asking: Asking<'_>) -> Result<Outgoing, Fault> {
    let Asking { request, model, can, streaming, .. } = asking;
    let keep = request.keep_prompt && can.sends.cache_control;
    let mut tools = tools(asking);
    let system = system(&request.system, keep);
    if let (true, None, Some(last)) = (keep, &system, tools.last_mut()) {
        last.cache_control = Some(EPHEMERAL);
    }
    let stop_sequences = request.stop_sequences.iter().map(String::as_str);
    let body = Body {
        model,
        max_tokens: request.max_tokens.or(can.default_max_tokens).unwrap_or(MAX_TOKENS),
        system,
        messages: turns(asking),
        tool_choice: tool_choice(asking).filter(|_| !tools.is_empty()),
        tools,
        temperature: request
            .temperature
            .filter(|it| can.temperature && it.is_finite())
            .map(|it| it.min(HOTTEST)),
        // One that is blank is refused.
        stop_sequences: stop_sequences
            .filter(|it| can.stop_sequences && !it.trim().is_empty())
            .collect(),
        thinking: can.sends.drop_unbound_thoughts.then_some(Thinking {
            r#type: "adaptive",
            block_binding: BlockBinding { prefix_mismatch_behavior: "drop_block" },
        }),
        output_config: output_config(asking),
        stream: streaming,
    };
    let version = if can.sends.version_2023 { VERSION_2023 } else { VERSION };
    let mut headers = vec![("anthropic-version", version.to_owned())];
    if can.sends.drop_unbound_thoughts {
        headers.push(("anthropic-beta", BINDING_BETA.to_owned()));
    }
    let body = serde_json::to_vec(&body)
        .map_err(|error| Fault::new(Class::Request, format!("no JSON can be made: {error}")))?;
    Ok(Outgoing { path: "/v1/messages".to_owned(), headers, body })
}

/// `None` for one that is blank, which is refused.
fn system(text: &str, keep: bool) -> Option<System<'_>> {
    if text.trim().is_empty() {
        None
    } else if keep {
        Some(System::Kept([KeptText { r#type: "text", text, cache_control: EPHEMERAL }]))
    } else {
        Some(System::Plain(text))
    }
}

fn tools(asking: Asking<'_>) -> Vec<Tool<'_>> {
    if !asking.can.native_tools {
        return Vec::new();
    }
    let offered = asking.offer.list().iter().map(|tool| Tool {
        name: &tool.alias,
        description: &tool.description,
        input_schema: tool.schema(),
        strict: asking.can.strict_tools && tool.fitted.strict,
        cache_control: None,
    });
    offered.collect()
}

fn tool_choice(asking: Asking<'_>) -> Option<ToolChoice> {
    match asking.request.choice {
        Choice::Auto => None,
        Choice::None => Some(ToolChoice { r#type: "none" }),
        Choice::Required => asking.can.forced_choice.then_some(ToolChoice { r#type: "any" }),
    }
}

/// The schema in the strict form, which is the only one that is taken. Where its root would say
/// something else then, the answer is better left free.
fn output_config(asking: Asking<'_>) -> Option<OutputConfig> {
    let schema = match asking.request.constraint.as_ref()? {
        Constraint::JsonSchema(schema) => schema,
        Constraint::Gbnf(_) | Constraint::StructuralTag(_) => return None,
    };
    if !asking.can.constraints.json_schema {
        return None;
    }
    let fitted = fit(schema, Dialect::AnthropicStrict);
    let other_root = fitted.losses.iter().any(|loss| {
        loss.pointer.is_empty() && matches!(loss.change, Change::Replaced | Change::Widened)
    });
    if !fitted.strict || other_root {
        return None;
    }
    Some(OutputConfig { format: Format { r#type: "json_schema", schema: fitted.schema } })
}

/// The messages with those of one role in a row made one, as the wire has them.
fn turns(asking: Asking<'_>) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    let mut verbatim = HashSet::new();
    for message in &asking.request.messages {
        let (role, content) = match message {
            Message::User(text) => ("user", text_block(text).into_iter().collect()),
            Message::Answer(answer) => ("assistant", answer_blocks(asking, answer, &mut verbatim)),
            Message::Results(results) => {
                ("user", results.iter().map(|it| result_block(it, &verbatim)).collect())
            }
        };
        match turns.last_mut() {
            Some(last) if last.role == role => last.content.extend(content),
            // A turn of nothing is refused.
            Some(_) | None if content.is_empty() => {}
            Some(_) | None => turns.push(Turn { role, content }),
        }
    }
    turns
}

/// `None` for a text of spaces only, which is refused.
fn text_block(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Text { text })
}

/// Without thoughts that nothing followed: a message that ends in one is refused.
fn answer_blocks<'r>(
    asking: Asking<'r>,
    answer: &'r Answer,
    verbatim: &mut HashSet<&'r str>,
) -> Vec<Block<'r>> {
    let (mut blocks, mut end) = (Vec::new(), 0);
    for part in &answer.parts {
        let (native, before) = (native(asking, part), blocks.len());
        match (&part.said, native) {
            (Said::Text(text), _) if text.trim().is_empty() => {}
            (Said::Text(_) | Said::Reasoning(_) | Said::Other, Some(raw)) => {
                blocks.push(Block::Native(raw));
            }
            (Said::Text(text), None) => blocks.extend(text_block(text)),
            (Said::Call(call), Some(raw)) => {
                verbatim.insert(call.id.as_str());
                blocks.push(Block::Native(raw));
            }
            (Said::Call(call), None) => blocks.push(call_block(asking, call)),
            // Thoughts count only with the signature of the model that reads them.
            (Said::Reasoning(_) | Said::Other, None) => {}
        }
        if blocks.len() > before && !matches!(part.said, Said::Reasoning(_)) {
            end = blocks.len();
        }
    }
    blocks.truncate(end);
    blocks
}

/// The model's own block. One of a thought that was cut before its signature is none: it would be
/// refused. Other servers sign nothing and take it back so.
fn native<'r>(asking: Asking<'r>, part: &'r Part) -> Option<&'r RawValue> {
    let raw = part.native.as_ref()?.for_model(Wire::Anthropic, asking.model)?;
    if matches!(part.said, Said::Reasoning(_)) && !asking.can.sends.version_2023 {
        let block = Fields::of(raw)?;
        let unsigned = block.text("signature").is_none_or(|it| it.is_empty());
        if unsigned && block.text("type").as_deref() == Some("thinking") {
            return None;
        }
    }
    Some(raw)
}

fn call_block<'r>(asking: Asking<'r>, call: &ToolCall) -> Block<'r> {
    let name = asking.offer.alias(&call.name);
    Block::ToolUse { id: spell(&call.id), name, input: object(&call.arguments) }
}

fn result_block<'r>(result: &'r ToolResult, verbatim: &HashSet<&str>) -> Block<'r> {
    let own = verbatim.contains(result.id.as_str());
    Block::ToolResult {
        tool_use_id: if own { result.id.clone() } else { spell(&result.id) },
        content: &result.text,
        is_error: result.is_error,
    }
}

/// An id of another provider in the letters that ids have here.
fn spell(id: &str) -> String {
    let allowed = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    let mut spelled = String::with_capacity(id.len());
    for character in id.chars() {
        if allowed(character) {
            spelled.push(character);
        } else {
            // Writing to a string does not fail.
            let _ = write!(spelled, "-{:x}-", u32::from(character));
        }
    }
    spelled
}
