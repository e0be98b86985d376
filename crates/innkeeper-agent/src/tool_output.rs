//! Converts tool output to content for a model.

mod binary_strings;
mod json_hash;
mod repeated_content;

use std::collections::HashMap;

use innkeeper_protocol::skim;
use innkeeper_protocol::view::MAX_CONTENT_BLOCKS;
use innkeeper_toolcall::quote_for_prompt;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::content::{Content, ContentBlock, StructuredContent};
use crate::tools::ToolOutput;

/// Maximum number of bytes of one output in a message to the model, a quarter of the context of the
/// largest models. The text of a longer output says how much is omitted.
pub const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// Maximum length of structured content that is compared with the texts of its result, in bytes:
/// longer content does not reach the model as a whole, so that the comparison is not worth its time.
const MAX_COMPARED_BYTES: usize = 1 << 20;

/// Converts the output of a tool to content. The text of the content has at most
/// [`MAX_OUTPUT_BYTES`]; a longer text is truncated, together with the blocks behind it, and says
/// how much is omitted.
pub fn to_content(output: &ToolOutput) -> Content {
    truncate_blocks(to_blocks(output)).into()
}

/// Formats the output of a tool: its text, with one line for each image or other binary content.
/// Structured content that no text repeats follows, with lines in place of Base64 data. The limit is that of [`to_content`].
pub fn to_text(output: &ToolOutput) -> String {
    to_content(output).to_text().into_owned()
}

/// Formats a result as one line of JSON that no call format matches: the text of the tool cannot
/// end the line or the list, and contains no start of call markup. `call` is the index of the call
/// in the response, for lines that need it.
pub(crate) fn result_line(tool: &str, call: Option<usize>, text: &str, is_error: bool) -> String {
    let key = if is_error { "error" } else { "result" };
    let tool = quote_for_prompt(tool);
    let text = quote_for_prompt(text);
    let call = call.map(|call| format!(r#""call": {call}, "#)).unwrap_or_default();
    format!(r#"{{"result_of": {tool}, {call}"{key}": {text}}}"#)
}

pub(crate) fn results_message<L: AsRef<str>>(lines: impl Iterator<Item = L>) -> String {
    let mut text = "Results of the tools, one a line:".to_owned();
    for line in lines {
        text.push('\n');
        text.push_str(line.as_ref());
    }
    text
}

/// Formats the output without a length limit.
pub(crate) fn to_full_text(output: &ToolOutput) -> String {
    Content::from(to_blocks(output)).to_text().into_owned()
}

/// Converts the output without a length limit. An output that is no result object is one text, and
/// an item that is no content block is the text of the item. The blocks behind
/// [`MAX_CONTENT_BLOCKS`] become one text, with one line for each image or other binary content: a
/// block takes more memory than the text of a small block.
fn to_blocks(output: &ToolOutput) -> Vec<ContentBlock> {
    let raw = output.raw().get();
    // A derived implementation also reads an array as the fields in their order.
    let object = Some(raw).filter(|raw| raw.starts_with('{'));
    let blocks = object.and_then(|raw| {
        let result: ResultObject<'_> = serde_json::from_str(raw).ok()?;
        let items = result.content?.get();
        if !items.starts_with('[') {
            return None;
        }
        let mut items = skim::elements(items).map(to_block);
        let mut blocks: Vec<_> = items.by_ref().take(MAX_CONTENT_BLOCKS).collect();
        blocks.extend(join_blocks(items));
        if let Some(structured) = result.structured {
            let is_repeated = structured.get().len() <= MAX_COMPARED_BYTES
                && repeated_content::is_in_texts(structured, &blocks);
            let media_lines = binary_strings::media_lines(&blocks);
            let json = binary_strings::replace(structured.get(), &media_lines)
                .unwrap_or_else(|| structured.into());
            if is_repeated {
                blocks.iter_mut().for_each(replace_binary_json);
            }
            blocks.push(ContentBlock::Structured(StructuredContent { json, is_repeated }));
        } else if blocks.is_empty() {
            blocks.push("[]".into());
        }
        Some(blocks)
    });
    blocks.unwrap_or_else(|| vec![raw.into()])
}

fn to_block(item: &str) -> ContentBlock {
    let Ok(raw) = serde_json::from_str::<&RawValue>(item) else { return item.into() };
    match ContentBlock::from_raw(raw) {
        Some(ContentBlock::Other(_)) | None => ContentBlock::Other(
            binary_strings::replace(raw.get(), &HashMap::new()).unwrap_or_else(|| raw.into()),
        ),
        Some(block) => block,
    }
}

/// Replaces binary data in a text that is JSON, as the text that repeats structured content is.
fn replace_binary_json(block: &mut ContentBlock) {
    if let ContentBlock::Text(text) = block
        && text.trim_start().starts_with(['{', '['])
        && let Some(json) = binary_strings::replace(text, &HashMap::new())
    {
        *block = json.get().into();
    }
}

/// Joins the texts of blocks to one block; `None` without blocks.
fn join_blocks(blocks: impl Iterator<Item = ContentBlock>) -> Option<ContentBlock> {
    let mut joined: Option<String> = None;
    for text in blocks.map(|block| block.to_text().unwrap_or_default().into_owned()) {
        match &mut joined {
            Some(joined) => joined.extend(["\n", &text]),
            None => joined = Some(text),
        }
    }
    joined.map(ContentBlock::from)
}

/// Truncates the text of the blocks to the limit.
fn truncate_blocks(mut blocks: Vec<ContentBlock>) -> Vec<ContentBlock> {
    // Text that the model does not get is bounded too.
    blocks.retain(|block| block.to_text().is_some() || block.byte_size() <= MAX_OUTPUT_BYTES);
    let lines = blocks.iter().filter_map(ContentBlock::to_text).map(|text| text.len() + 1);
    let full_len = lines.sum::<usize>().saturating_sub(1);
    if full_len <= MAX_OUTPUT_BYTES {
        return blocks;
    }
    let mut kept = Vec::new();
    let mut kept_len = 0;
    for block in blocks {
        let Some(text) = block.to_text() else { continue };
        let room = MAX_OUTPUT_BYTES - kept_len;
        if text.len() < room {
            kept_len += text.len() + 1;
            kept.push(block);
            continue;
        }
        let prefix = &text[..text.floor_char_boundary(room)];
        let omitted = full_len - kept_len - prefix.len();
        kept.push(format!("{prefix}\n[{omitted} of {full_len} bytes omitted]").into());
        break;
    }
    kept
}

/// Formats any value: a string unchanged, content blocks joined by newlines, other values as JSON.
pub fn format_tool_response(value: &Value) -> String {
    truncate(match value {
        Value::Null => "None".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => format_blocks(items).unwrap_or_else(|| pretty_json(value)),
        Value::Object(_) => pretty_json(value),
    })
}

/// The used fields of a result object.
#[derive(Deserialize)]
struct ResultObject<'r> {
    #[serde(borrow)]
    content: Option<&'r RawValue>,
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<&'r RawValue>,
}

/// Formats content blocks; `None` unless all items are content blocks.
fn format_blocks(items: &[Value]) -> Option<String> {
    if items.is_empty() {
        return None;
    }
    let blocks: Option<Vec<_>> =
        items.iter().map(|item| ContentBlock::from_raw(&to_raw_value(item).ok()?)).collect();
    Some(Content::from(blocks?).to_text().into_owned())
}

fn pretty_json(value: &Value) -> String {
    match value {
        Value::Array(items) if items.is_empty() => "[]".to_owned(),
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        _ => serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string()),
    }
}

fn truncate(mut text: String) -> String {
    if text.len() <= MAX_OUTPUT_BYTES {
        return text;
    }
    let full_len = text.len();
    text.truncate(text.floor_char_boundary(MAX_OUTPUT_BYTES));
    let omitted = full_len - text.len();
    text.push_str(&format!("\n[{omitted} of {full_len} bytes omitted]"));
    text
}

#[cfg(test)]
mod tests;
