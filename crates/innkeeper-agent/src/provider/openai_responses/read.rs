//! An answer that is over.

use super::item::Item;
use crate::conversation::{Answer, Part, Said};
use crate::provider::codec::{Fault, Fields, PARTS};
use crate::provider::openai::told;
use crate::provider::{Class, Finish, Response, Usage};

/// An answer that is there at once.
pub(super) fn whole(model: &str, body: &str) -> Result<Response, Fault> {
    let fields = Fields::parse(body);
    let fields = fields.ok_or_else(|| Fault::unreadable("the answer is no JSON object"))?;
    let end = End::of(&fields, "completed")?;
    if fields.get("output").is_none() {
        return Err(Fault::unreadable("the answer has no `output`"));
    }
    let output = fields.list("output").unwrap_or_default();
    if output.len() > PARTS {
        return Err(Fault::too_many("items"));
    }
    let (mut parts, mut refused) = (Vec::new(), false);
    for block in output {
        let Some(item) = Item::read(block, model)? else { continue };
        refused |= item.refused;
        parts.push(item.part);
    }
    Ok(end.with(parts, refused))
}

/// How an answer ends.
pub(super) struct End {
    /// `None` where it was complete.
    cut: Option<Finish>,
    usage: Option<Usage>,
    model: Option<String>,
}

impl End {
    /// Reads the response object, which may say no status.
    ///
    /// # Errors
    ///
    /// It failed, or is not over.
    pub(super) fn of(fields: &Fields<'_>, status: &str) -> Result<Self, Fault> {
        let status = fields.word("status").unwrap_or_else(|| status.to_owned());
        let is_error = fields.text("object").is_some_and(|object| object == "error");
        if is_error || status == "failed" || fields.get("error").is_some() {
            return Err(told(fields));
        }
        let cut = match status.as_str() {
            "completed" => None,
            "incomplete" => {
                let details = fields.object("incomplete_details").unwrap_or_default();
                Some(match details.word("reason").as_deref() {
                    Some("max_output_tokens") => Finish::Length,
                    Some("content_filter") => Finish::Refused,
                    other => Finish::Other(other.unwrap_or("incomplete").to_owned()),
                })
            }
            "cancelled" => {
                let class = Class::Later { after: None };
                return Err(Fault::new(class, "the answer was cancelled at the provider"));
            }
            other => {
                let message = format!("the answer is not over: its status is `{other}`");
                return Err(Fault::unreadable(message));
            }
        };
        let usage = fields.object("usage").and_then(|usage| read_usage(&usage));
        Ok(Self { cut, usage, model: fields.word("model") })
    }

    pub(super) fn with(self, parts: Vec<Part>, refused: bool) -> Response {
        let calls = parts.iter().any(|part| matches!(part.said, Said::Call(_)));
        let finish = self.cut.unwrap_or(if calls {
            Finish::ToolCalls
        } else if refused {
            Finish::Refused
        } else {
            Finish::Stop
        });
        Response { answer: Answer { parts }, finish, usage: self.usage, model: self.model }
    }
}

fn read_usage(usage: &Fields<'_>) -> Option<Usage> {
    let (input, output) = (usage.number("input_tokens"), usage.number("output_tokens"));
    if input.is_none() && output.is_none() {
        return None;
    }
    let read = usage.object("input_tokens_details").unwrap_or_default();
    let written = usage.object("output_tokens_details").unwrap_or_default();
    Some(Usage {
        prompt_tokens: input.unwrap_or_default(),
        completion_tokens: output.unwrap_or_default(),
        cached_tokens: read.number("cached_tokens").unwrap_or_default(),
        reasoning_tokens: written.number("reasoning_tokens").unwrap_or_default(),
    })
}
