//! One item of an answer as a part.

use serde_json::value::RawValue;

use crate::conversation::{Native, Part, Said, ToolCall};
use crate::provider::Wire;
use crate::provider::codec::{Fault, Fields, string, texts};

/// Between the paragraphs of a thought.
pub(super) const PARAGRAPH: &str = "\n\n";

/// What an item says, and whether it declines.
pub(super) struct Item {
    pub(super) part: Part,
    pub(super) refused: bool,
}

impl Item {
    /// Reads a finished item; what is no object says nothing.
    ///
    /// # Errors
    ///
    /// It has too many parts.
    pub(super) fn read(block: &RawValue, model: &str) -> Result<Option<Self>, Fault> {
        let Some(fields) = Fields::of(block) else { return Ok(None) };
        let (mut refused, mut in_own_words) = (false, true);
        let said = match fields.text("type").as_deref() {
            Some("message") => {
                let content = message(&fields)?;
                refused = content.1;
                if content.0.is_empty() { Said::Other } else { Said::Text(content.0) }
            }
            Some("reasoning") => Said::Reasoning(reasoning(&fields)?),
            Some("function_call") => {
                let mut call = call(&fields);
                // The result goes back under the same id, and a conversation with arguments that
                // are no object is not taken by every server.
                in_own_words =
                    fields.word("call_id").is_some() && Fields::parse(&call.arguments).is_some();
                let cut = fields.text("status").is_some_and(|it| it == "incomplete");
                if call.arguments.trim().is_empty() && !cut {
                    "{}".clone_into(&mut call.arguments);
                }
                Said::Call(call)
            }
            Some(_) | None => Said::Other,
        };
        let native = in_own_words.then(|| Native {
            wire: Wire::OpenAiResponses,
            model: model.to_owned(),
            block: block.to_owned(),
        });
        Ok(Some(Self { part: Part { said, native }, refused }))
    }
}

/// Whether a part is a thought that its provider can read again.
pub(super) fn is_encrypted(part: &Part) -> bool {
    let block = part.native.as_ref().and_then(|native| Fields::of(&native.block));
    let content = block.is_some_and(|block| block.word("encrypted_content").is_some());
    content && matches!(part.said, Said::Reasoning(_))
}

/// The text, and whether there is a refusal in it.
fn message(fields: &Fields<'_>) -> Result<(String, bool), Fault> {
    if let Some(content) = fields.text("content") {
        return Ok((content, false));
    }
    let (mut said, mut refused) = (String::new(), false);
    for part in fields.parts("content")? {
        let part = Fields::of(part).unwrap_or_default();
        if let Some(text) = part.text("text") {
            said.push_str(&text);
        } else if let Some(refusal) = part.text("refusal") {
            said.push_str(&refusal);
            refused = true;
        }
    }
    Ok((said, refused))
}

/// The summary first, then the thoughts themselves, which only open models show.
fn reasoning(fields: &Fields<'_>) -> Result<String, Fault> {
    let mut paragraphs = texts(&fields.parts("summary")?, "text");
    paragraphs.extend(texts(&fields.parts("content")?, "text"));
    Ok(paragraphs.join(PARAGRAPH))
}

fn call(fields: &Fields<'_>) -> ToolCall {
    let arguments = fields.get("arguments");
    let arguments = arguments.map(|raw| string(raw).unwrap_or_else(|| raw.get().to_owned()));
    ToolCall {
        id: fields.word("call_id").or_else(|| fields.word("id")).unwrap_or_default(),
        name: fields.word("name").unwrap_or_default(),
        arguments: arguments.unwrap_or_default(),
    }
}
