//! What a choice says, whole or piece by piece.

use serde_json::json;
use serde_json::value::RawValue;

use super::calls::Calls;
use super::details::Details;
use crate::conversation::{Answer, Native, Part, Said};
use crate::provider::codec::{Fault, Fields, PARTS, string, texts};
use crate::provider::openai::{Members, raw, told};
use crate::provider::{Finish, Piece, Response, Usage, Wire};

/// An answer that is there at once.
pub(super) fn whole(model: String, body: &str, pieces: &mut Vec<Piece>) -> Result<Response, Fault> {
    let fields = Fields::parse(body);
    let fields = fields.ok_or_else(|| Fault::unreadable("the answer is no JSON object"))?;
    let mut gathered = Gathered::new(model);
    gathered.take(&fields, true, pieces)?;
    if !gathered.begun {
        return Err(Fault::unreadable("the answer has no `choices` with a message"));
    }
    gathered.settle(pieces);
    Ok(gathered.into_response())
}

/// What is there of an answer.
pub(super) struct Gathered {
    /// As it was asked for.
    model: String,
    named: Option<String>,
    reasoning: String,
    /// Where the reasoning stood first.
    place: Option<Place>,
    details: Details,
    text: String,
    refused: bool,
    others: Vec<Box<RawValue>>,
    calls: Calls,
    finish: Option<String>,
    usage: Option<Usage>,
    /// A message was there, or a piece of one.
    begun: bool,
}

/// Where servers put what the model thinks.
#[derive(Clone, Copy)]
enum Place {
    ReasoningContent,
    Reasoning,
    /// Parts of the content, as Mistral has them.
    Thinking,
}

impl Gathered {
    pub(super) fn new(model: String) -> Self {
        Self {
            model,
            named: None,
            reasoning: String::new(),
            place: None,
            details: Details::default(),
            text: String::new(),
            refused: false,
            others: Vec::new(),
            calls: Calls::default(),
            finish: None,
            usage: None,
            begun: false,
        }
    }

    /// Takes an answer, or a chunk of one.
    pub(super) fn take(
        &mut self,
        fields: &Fields<'_>,
        whole: bool,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Fault> {
        let is_error = fields.text("object").is_some_and(|object| object == "error");
        if is_error || fields.get("error").is_some() {
            return Err(self.failed(told(fields)));
        }
        if self.named.is_none() {
            self.named = fields.word("model");
        }
        if let Some(usage) = fields.object("usage").and_then(|usage| read_usage(&usage)) {
            self.usage = Some(usage);
        }
        let choices = fields.list("choices").unwrap_or_default();
        let mut choices = choices.into_iter().filter_map(Fields::of);
        // Of several answers the first is taken.
        let choice = choices.find(|choice| choice.number("index").unwrap_or(0) == 0);
        match choice {
            Some(choice) => self.choice(&choice, whole, pieces),
            None => Ok(()),
        }
    }

    fn choice(
        &mut self,
        choice: &Fields<'_>,
        whole: bool,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Fault> {
        if choice.get("error").is_some() {
            return Err(self.failed(told(choice)));
        }
        let delta = choice.object("delta").filter(|_| !whole);
        let said = delta.or_else(|| choice.object("message").filter(|_| !self.begun));
        if let Some(said) = said {
            self.begun = true;
            self.message(&said, whole, pieces)?;
        }
        if let Some(finish) = choice.word("finish_reason") {
            self.finish = Some(finish);
            if !whole {
                self.settle(pieces);
            }
        }
        Ok(())
    }

    fn message(
        &mut self,
        said: &Fields<'_>,
        whole: bool,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Fault> {
        // There are servers that say the same in both.
        if let Some(reasoning) = said.word("reasoning_content") {
            self.reason(Place::ReasoningContent, &reasoning, pieces);
        } else if let Some(reasoning) = said.word("reasoning") {
            self.reason(Place::Reasoning, &reasoning, pieces);
        }
        for detail in said.parts("reasoning_details")? {
            self.details.take(detail)?;
        }
        if let Some(content) = said.get("content") {
            match string(content) {
                Some(content) => self.say(content, pieces),
                None => {
                    for part in said.parts("content")? {
                        self.part(part, pieces)?;
                    }
                }
            }
        }
        if let Some(refusal) = said.word("refusal") {
            self.refused = true;
            self.say(refusal, pieces);
        }
        let entries = said.parts("tool_calls")?;
        let entries: Vec<_> = entries.into_iter().filter_map(Fields::of).collect();
        self.calls.take(&entries, whole, pieces)
    }

    /// A part of a content that is a list.
    fn part(&mut self, part: &RawValue, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let fields = Fields::of(part).unwrap_or_default();
        match fields.text("type").as_deref() {
            Some("text") => self.say(fields.text("text").unwrap_or_default(), pieces),
            Some("refusal") => {
                self.refused = true;
                self.say(fields.text("refusal").unwrap_or_default(), pieces);
            }
            Some("thinking") => {
                let thinking = fields.text("thinking");
                let thinking = match thinking {
                    Some(thinking) => thinking,
                    None => texts(&fields.parts("thinking")?, "text").concat(),
                };
                self.reason(Place::Thinking, &thinking, pieces);
            }
            Some(_) | None => {
                if self.others.len() == PARTS {
                    return Err(Fault::too_many("parts"));
                }
                self.others.push(part.to_owned());
            }
        }
        Ok(())
    }

    fn say(&mut self, text: String, pieces: &mut Vec<Piece>) {
        if !text.is_empty() {
            self.text.push_str(&text);
            pieces.push(Piece::Text(text));
        }
    }

    fn reason(&mut self, place: Place, text: &str, pieces: &mut Vec<Piece>) {
        if !text.is_empty() {
            self.place.get_or_insert(place);
            self.reasoning.push_str(text);
            pieces.push(Piece::Reasoning(text.to_owned()));
        }
    }

    /// The model says no more.
    pub(super) fn settle(&mut self, pieces: &mut Vec<Piece>) {
        let cut = self.ending() != Finish::ToolCalls;
        self.calls.settle(cut, pieces);
    }

    /// Whether the answer ends here: its end was told, or what was told of the end of the stream
    /// cuts no call.
    pub(super) fn is_over(&self, done: bool) -> bool {
        self.begun && (self.finish.is_some() || (done && self.calls.are_closed()))
    }

    /// A failure, with what was written before.
    pub(super) fn failed(&self, mut fault: Fault) -> Fault {
        if fault.written.is_none() && !self.text.is_empty() {
            fault.written = Some(self.text.clone());
        }
        fault
    }

    pub(super) fn broken_off(self) -> Fault {
        Fault::broken_off(self.text)
    }

    fn ending(&self) -> Finish {
        let stop = if !self.calls.is_empty() {
            Finish::ToolCalls
        } else if self.refused {
            Finish::Refused
        } else {
            Finish::Stop
        };
        match self.finish.as_deref() {
            None | Some("stop" | "eos" | "tool_calls" | "tool_call" | "function_call") => stop,
            Some("length" | "max_tokens" | "model_length") => Finish::Length,
            Some("model_context_window_exceeded") => Finish::ContextFull,
            Some("content_filter" | "refusal" | "sensitive") => Finish::Refused,
            Some(other) => Finish::Other(other.to_owned()),
        }
    }

    pub(super) fn into_response(self) -> Response {
        let finish = self.ending();
        let native = |block| Native { wire: Wire::OpenAiChat, model: self.model.clone(), block };
        let mut parts = Vec::new();
        let words = self.place.map(|place| place.words(&self.reasoning));
        let words = if self.details.is_empty() {
            words
        } else {
            let mut members = Members::default();
            members.add("reasoning_details", &self.details.finish());
            Some(raw(&members))
        };
        if let Some(words) = words {
            let native = Some(native(words));
            parts.push(Part { said: Said::Reasoning(self.reasoning), native });
        }
        if !self.text.is_empty() {
            parts.push(Part::new(Said::Text(self.text)));
        }
        let others = self.others.into_iter();
        parts.extend(others.map(|it| Part { said: Said::Other, native: Some(native(it)) }));
        parts.extend(self.calls.into_parts(&self.model));
        Response { answer: Answer { parts }, finish, usage: self.usage, model: self.named }
    }
}

impl Place {
    /// What goes back: a member of the message, or a part of its content.
    fn words(self, reasoning: &str) -> Box<RawValue> {
        raw(&match self {
            Self::ReasoningContent => json!({"reasoning_content": reasoning}),
            Self::Reasoning => json!({"reasoning": reasoning}),
            Self::Thinking => {
                json!({"type": "thinking", "thinking": [{"type": "text", "text": reasoning}]})
            }
        })
    }
}

fn read_usage(usage: &Fields<'_>) -> Option<Usage> {
    let (prompt, completion) = (usage.number("prompt_tokens"), usage.number("completion_tokens"));
    if prompt.is_none() && completion.is_none() {
        return None;
    }
    let read = usage.object("prompt_tokens_details").unwrap_or_default();
    let written = usage.object("completion_tokens_details").unwrap_or_default();
    let cached = read.number("cached_tokens").or_else(|| usage.number("prompt_cache_hit_tokens"));
    Some(Usage {
        prompt_tokens: prompt.unwrap_or_default(),
        completion_tokens: completion.unwrap_or_default(),
        cached_tokens: cached.unwrap_or_default(),
        reasoning_tokens: written.number("reasoning_tokens").unwrap_or_default(),
    })
}
