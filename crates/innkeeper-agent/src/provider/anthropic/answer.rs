//! A whole answer, and what of one is read alike whether it comes whole or in pieces.

use super::{block, fault};
use crate::conversation::{Answer, Part, Said};
use crate::provider::codec::{Fault, Fields, PARTS, is_json};
use crate::provider::{Finish, Response, Usage};

pub(super) fn read(body: &[u8], model: &str) -> Result<Response, Fault> {
    let text = std::str::from_utf8(body).ok();
    let Some(message) = text.and_then(Fields::parse) else {
        return Err(Fault::unreadable("the answer is no JSON object"));
    };
    let Some(content) = message.list("content") else {
        return Err(match message.get("error") {
            Some(_) => fault::told(None, &message),
            None => Fault::unreadable("the answer has no list `content`"),
        });
    };
    if content.len() > PARTS {
        return Err(Fault::too_many("parts"));
    }
    let parts: Vec<Part> = content.into_iter().map(|raw| block::read(raw, model)).collect();
    let mut counts = Counts::default();
    if let Some(usage) = message.object("usage") {
        counts.take(&usage);
    }
    Ok(Response {
        finish: finish(message.text("stop_reason").as_deref(), &parts, false),
        answer: Answer { parts },
        usage: counts.usage(),
        model: message.text("model"),
    })
}

/// Why the answer ends; `cut` says that a call in it lacks its end.
pub(super) fn finish(reason: Option<&str>, parts: &[Part], cut: bool) -> Finish {
    let mut calls = parts.iter().filter_map(|part| match &part.said {
        Said::Call(call) => Some(call),
        Said::Text(_) | Said::Reasoning(_) | Said::Other => None,
    });
    // A stop sequence may stand in the middle of a call.
    let at_sequence = reason == Some("stop_sequence");
    let cut = cut || (at_sequence && calls.clone().any(|call| !is_json(&call.arguments)));
    match reason {
        Some("end_turn" | "stop_sequence" | "tool_use") | None => {
            if cut {
                Finish::Length
            } else if calls.next().is_some() {
                Finish::ToolCalls
            } else {
                Finish::Stop
            }
        }
        Some("max_tokens") => Finish::Length,
        Some("model_context_window_exceeded") => Finish::ContextFull,
        Some("refusal") => Finish::Refused,
        Some("pause_turn") => Finish::Paused,
        Some(other) => Finish::Other(other.to_owned()),
    }
}

/// What was counted so far. Later counts are totals and stand for earlier ones.
#[derive(Default)]
pub(super) struct Counts {
    input: Option<u64>,
    cache_written: Option<u64>,
    cache_read: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

impl Counts {
    pub(super) fn take(&mut self, usage: &Fields<'_>) {
        let details = usage.object("output_tokens_details");
        for (count, new) in [
            (&mut self.input, usage.number("input_tokens")),
            (&mut self.cache_written, usage.number("cache_creation_input_tokens")),
            (&mut self.cache_read, usage.number("cache_read_input_tokens")),
            (&mut self.output, usage.number("output_tokens")),
            (&mut self.thinking, details.and_then(|it| it.number("thinking_tokens"))),
        ] {
            *count = new.or(*count);
        }
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        let read = [self.input, self.cache_written, self.cache_read];
        if self.output.is_none() && read.iter().all(Option::is_none) {
            return None;
        }
        Some(Usage {
            prompt_tokens: read.into_iter().flatten().fold(0, u64::saturating_add),
            completion_tokens: self.output.unwrap_or_default(),
            cached_tokens: self.cache_read.unwrap_or_default(),
            reasoning_tokens: self.thinking.unwrap_or_default(),
        })
    }
}
