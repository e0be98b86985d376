//! What generateContent answers, gathered from one response or from many.

use serde_json::value::RawValue;

use super::partial::Partial;
use crate::conversation::{Answer, Native, Part, Said, ToolCall};
use crate::provider::codec::{Fault, Fields, PARTS};
use crate::provider::gemini::fault_of;
use crate::provider::{Finish, Piece, Response, Usage, Wire};

/// What has come so far.
pub(super) struct Gathered {
    /// The model that was asked.
    model: String,
    parts: Vec<Part>,
    calls: usize,
    /// A call that comes value by value, while it does.
    partial: Option<Partial>,
    /// Such a call had no end.
    unended: bool,
    finish: Option<String>,
    /// Why the prompt was declined.
    blocked: bool,
    usage: Option<Usage>,
    /// The model that answers.
    version: Option<String>,
}

impl Gathered {
    pub(super) fn new(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            parts: Vec::new(),
            calls: 0,
            partial: None,
            unended: false,
            finish: None,
            blocked: false,
            usage: None,
            version: None,
        }
    }

    /// Reads an answer that came whole.
    pub(super) fn whole(mut self, body: &[u8]) -> Result<Response, Fault> {
        let body = std::str::from_utf8(body);
        let body = body.map_err(|_| Fault::unreadable("the answer is not UTF-8"))?;
        self.event(body, &mut Vec::new())?;
        if self.finish.is_none() && !self.blocked {
            self.unended |= self.close(&mut Vec::new());
            if self.parts.is_empty() {
                return Err(Fault::unreadable("the answer has no candidate"));
            }
            self.finish = Some(String::new());
        }
        self.end()
    }

    /// Takes one response.
    pub(super) fn event(&mut self, text: &str, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        // Servers in between end a stream so, as others do.
        if text.trim() == "[DONE]" {
            return Ok(());
        }
        let Some(fields) = Fields::parse(text) else {
            return Err(Fault::unreadable("the answer is not the JSON of a response"));
        };
        if fields.get("error").is_some() {
            let written = Some(self.written()).filter(|written| !written.is_empty());
            return Err(Fault { written, ..fault_of(&fields, 500) });
        }
        self.version = fields.text("modelVersion").or(self.version.take());
        self.usage =
            fields.get("usageMetadata").and_then(Fields::of).as_ref().map(usage).or(self.usage);
        self.blocked |=
            fields.object("promptFeedback").is_some_and(|it| it.get("blockReason").is_some());
        // One candidate was asked for.
        let candidates = fields.list("candidates").unwrap_or_default();
        let mut candidates = candidates.into_iter().filter_map(Fields::of);
        let Some(candidate) = candidates.find(|it| it.number("index").unwrap_or(0) == 0) else {
            return Ok(());
        };
        for part in candidate.object("content").unwrap_or_default().parts("parts")? {
            self.part(part, pieces)?;
            if self.parts.len() > PARTS {
                return Err(Fault::too_many("parts"));
            }
        }
        self.finish = candidate.text("finishReason").or(self.finish.take());
        if self.finish.is_some() {
            self.unended |= self.close(pieces);
        }
        Ok(())
    }

    /// Nothing more comes.
    pub(super) fn end(self) -> Result<Response, Fault> {
        let finish = match self.finish.as_deref() {
            Some(word) => match finish(word, self.calls > 0) {
                Finish::ToolCalls if self.unended => Finish::Malformed,
                finish => finish,
            },
            None if self.blocked => Finish::Refused,
            None => return Err(Fault::broken_off(self.written())),
        };
        let answer = Answer { parts: self.parts };
        Ok(Response { answer, finish, usage: self.usage, model: self.version })
    }

    fn part(&mut self, raw: &RawValue, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let fields = Fields::of(raw).unwrap_or_default();
        let mut goes_back = true;
        let said = if let Some(call) = fields.get("functionCall") {
            let call = Fields::of(call).unwrap_or_default();
            let partly = call.is_true("willContinue") || call.get("partialArgs").is_some();
            if partly || (self.partial.is_some() && call.get("name").is_none()) {
                return self.partly(&fields, &call, pieces);
            }
            self.unended |= self.close(pieces);
            // Only an object is taken back.
            goes_back = call.get("args").is_none_or(|args| args.get().starts_with('{'));
            self.call(&call, pieces)
        } else if let Some(text) = fields.text("text") {
            let thought = fields.is_true("thought");
            if !text.is_empty() {
                let text = text.clone();
                pieces.push(if thought { Piece::Reasoning(text) } else { Piece::Text(text) });
            }
            let said = if thought { Said::Reasoning(text) } else { Said::Text(text) };
            if fields.iter().all(|(name, _)| matches!(name, "text" | "thought")) {
                self.plain(said);
                return Ok(());
            }
            said
        } else {
            Said::Other
        };
        let native = goes_back.then(|| self.native(raw.to_owned()));
        self.parts.push(Part { said, native });
        Ok(())
    }

    fn native(&self, block: Box<RawValue>) -> Native {
        Native { wire: Wire::GeminiGenerate, model: self.model.clone(), block }
    }

    /// A piece of a call that comes value by value.
    fn partly(
        &mut self,
        part: &Fields<'_>,
        call: &Fields<'_>,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Fault> {
        let mut partial = self.partial.take().unwrap_or_else(|| {
            let partial = Partial::new(part, call);
            pieces.push(Piece::CallStart { index: self.calls, name: partial.name.clone() });
            self.calls += 1;
            partial
        });
        partial.add(call)?;
        self.partial = Some(partial);
        if !call.is_true("willContinue") {
            self.close(pieces);
        }
        Ok(())
    }

    /// Nothing more comes of the call that comes value by value; whether there is one.
    fn close(&mut self, pieces: &mut Vec<Piece>) -> bool {
        let Some(partial) = self.partial.take() else { return false };
        let arguments = partial.arguments();
        let index = self.calls.saturating_sub(1);
        pieces.push(Piece::Arguments { index, fragment: arguments.clone() });
        let native = partial.part().map(|part| self.native(part));
        let Partial { id, name, .. } = partial;
        self.parts.push(Part { said: Said::Call(ToolCall { id, name, arguments }), native });
        true
    }

    /// Text with nothing beside it is one part, in however many it comes.
    fn plain(&mut self, said: Said) {
        let last = self.parts.last_mut().filter(|part| part.native.is_none());
        match (last.map(|part| &mut part.said), said) {
            (Some(Said::Text(text)), Said::Text(more))
            | (Some(Said::Reasoning(text)), Said::Reasoning(more)) => text.push_str(&more),
            (_, Said::Text(more) | Said::Reasoning(more)) if more.is_empty() => {}
            (_, said) => self.parts.push(Part::new(said)),
        }
    }

    fn call(&mut self, call: &Fields<'_>, pieces: &mut Vec<Piece>) -> Said {
        let name = call.text("name").unwrap_or_default();
        let arguments = call.text("args").unwrap_or_else(|| {
            call.get("args").map_or_else(|| "{}".to_owned(), |args| args.get().to_owned())
        });
        let index = self.calls;
        self.calls += 1;
        pieces.push(Piece::CallStart { index, name: name.clone() });
        pieces.push(Piece::Arguments { index, fragment: arguments.clone() });
        Said::Call(ToolCall { id: call.text("id").unwrap_or_default(), name, arguments })
    }

    /// The text so far.
    fn written(&self) -> String {
        let texts = self.parts.iter().map(|part| match &part.said {
            Said::Text(text) => text.as_str(),
            Said::Reasoning(_) | Said::Call(_) | Said::Other => "",
        });
        texts.collect()
    }
}

fn usage(told: &Fields<'_>) -> Usage {
    let count = |name| told.number(name).unwrap_or(0);
    let thoughts = count("thoughtsTokenCount");
    Usage {
        prompt_tokens: count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount")),
        completion_tokens: count("candidatesTokenCount").saturating_add(thoughts),
        cached_tokens: count("cachedContentTokenCount"),
        reasoning_tokens: thoughts,
    }
}

fn finish(word: &str, called: bool) -> Finish {
    match word {
        "STOP" | "FINISH_REASON_UNSPECIFIED" | "" if called => Finish::ToolCalls,
        "STOP" | "FINISH_REASON_UNSPECIFIED" | "" => Finish::Stop,
        "MAX_TOKENS" | "CONTINUATION" => Finish::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR"
        | "ESCALATION"
        | "PUP_LIMITED_DISABLED" => Finish::Refused,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "MISSING_THOUGHT_SIGNATURE"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE" => Finish::Malformed,
        word => Finish::Other(word.to_owned()),
    }
}
