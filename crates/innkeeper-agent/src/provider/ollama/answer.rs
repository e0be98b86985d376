//! What Ollama answers: one line with all of it, or many with a piece each.

use serde_json::value::{RawValue, to_raw_value};

use super::fault;
use crate::conversation::{Answer, Native, Part, Said, ToolCall};
use crate::provider::codec::{Fault, Fields, Lines, PARTS, Reader, arguments};
use crate::provider::{Finish, Piece, Response, Usage, Wire};

/// Reads an answer that is one line.
pub(super) fn read(body: &[u8], model: String) -> Result<Response, Fault> {
    let text = std::str::from_utf8(body).ok();
    let Some(line) = text.and_then(Fields::parse) else {
        return Err(Fault::unreadable("the answer is no JSON object"));
    };
    if line.get("message").is_none() && line.get("error").is_none() {
        return Err(Fault::unreadable("the answer has no `message`"));
    }
    let mut message = Message::new(model);
    message.line(&line, &mut Vec::new())?;
    Ok(message.response())
}

/// The reader of many lines.
pub(super) struct Stream {
    lines: Lines,
    message: Message,
}

/// The answer as far as it came. The wire has one text, one thought and a list of calls, in no order
/// among them.
struct Message {
    asked: String,
    thinking: String,
    text: String,
    calls: Vec<Part>,
    model: Option<String>,
    done: bool,
    reason: Option<String>,
    usage: Option<Usage>,
}

impl Stream {
    pub(super) fn new(asked: String) -> Self {
        Self { lines: Lines::default(), message: Message::new(asked) }
    }
}

impl Reader for Stream {
    fn push(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let Self { lines, message } = self;
        let taken = lines.push(bytes, |line| message.take(line, pieces));
        taken.map_err(|fault| message.with_text(fault))
    }

    fn is_over(&self) -> bool {
        self.message.done
    }

    /// What comes in the last line, without its line break, is only in the answer.
    fn end(self: Box<Self>) -> Result<Response, Fault> {
        let Self { mut lines, mut message } = *self;
        let mut rest = None;
        let ended = lines.end(|line| {
            rest = Some(line.to_owned());
            Ok(())
        });
        // A line that is cut is none, wherever the cut is.
        if let (Ok(()), Some(line)) = (ended, rest.as_deref().and_then(Fields::parse)) {
            let taken = message.line(&line, &mut Vec::new());
            taken.map_err(|fault| message.with_text(fault))?;
        }
        // Calls may come behind the line that says it is done, so only now it is over.
        if message.done { Ok(message.response()) } else { Err(Fault::broken_off(message.text)) }
    }
}

impl Message {
    fn new(asked: String) -> Self {
        Self {
            asked,
            thinking: String::new(),
            text: String::new(),
            calls: Vec::new(),
            model: None,
            done: false,
            reason: None,
            usage: None,
        }
    }

    fn take(&mut self, line: &str, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let Some(members) = Fields::parse(line) else {
            if self.done {
                return Ok(());
            }
            let shown: String = line.chars().take(200).collect();
            return Err(Fault::unreadable(format!("a line is no JSON object: {shown}")));
        };
        self.line(&members, pieces)
    }

    fn line(&mut self, line: &Fields<'_>, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        if let Some(fault) = fault::told(None, line) {
            return Err(fault);
        }
        if let Some(message) = line.object("message") {
            if let Some(text) = message.text("thinking").filter(|it| !it.is_empty()) {
                self.thinking.push_str(&text);
                pieces.push(Piece::Reasoning(text));
            }
            if let Some(text) = message.text("content").filter(|it| !it.is_empty()) {
                self.text.push_str(&text);
                pieces.push(Piece::Text(text));
            }
            for raw in message.list("tool_calls").unwrap_or_default() {
                self.call(raw, pieces)?;
            }
        }
        self.model = line.text("model").or(self.model.take());
        self.reason = line.text("done_reason").filter(|it| !it.is_empty()).or(self.reason.take());
        self.done |= line.is_true("done");
        self.count(line);
        Ok(())
    }

    fn call(&mut self, raw: &RawValue, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        if self.calls.len() == PARTS {
            return Err(Fault::too_many("calls"));
        }
        let Some(outer) = Fields::of(raw) else { return Ok(()) };
        let inner = outer.object("function");
        let function = inner.as_ref().unwrap_or(&outer);
        let written = function.get("arguments");
        let call = ToolCall {
            id: outer.text("id").unwrap_or_default(),
            name: function.text("name").unwrap_or_default(),
            arguments: arguments(written),
        };
        let index = self.calls.len();
        pieces.push(Piece::CallStart { index, name: call.name.clone() });
        pieces.push(Piece::Arguments { index, fragment: call.arguments.clone() });
        // Only an object is taken back.
        let goes_back = inner.is_some() && written.is_some_and(|it| it.get().starts_with('{'));
        let native = goes_back.then(|| self.native(raw.to_owned()));
        self.calls.push(Part { said: Said::Call(call), native });
        Ok(())
    }

    fn count(&mut self, line: &Fields<'_>) {
        let (read, written) = (line.number("prompt_eval_count"), line.number("eval_count"));
        if read.is_none() && written.is_none() {
            return;
        }
        self.usage = Some(Usage {
            prompt_tokens: read.unwrap_or_default(),
            completion_tokens: written.unwrap_or_default(),
            cached_tokens: line.number("prompt_eval_cached_count").unwrap_or_default(),
            reasoning_tokens: 0,
        });
    }

    fn native(&self, block: Box<RawValue>) -> Native {
        Native { wire: Wire::Ollama, model: self.asked.clone(), block }
    }

    fn with_text(&self, fault: Fault) -> Fault {
        let written = fault.written.or_else(|| Some(self.text.clone()));
        Fault { written, ..fault }
    }

    fn response(mut self) -> Response {
        let mut parts = Vec::new();
        if !self.thinking.is_empty() {
            let block = to_raw_value(&serde_json::json!({"thinking": self.thinking}));
            let native = block.ok().map(|block| self.native(block));
            parts.push(Part { said: Said::Reasoning(self.thinking), native });
        }
        if !self.text.is_empty() {
            parts.push(Part::new(Said::Text(self.text)));
        }
        let finish = match self.reason.as_deref() {
            Some("stop") | None if self.calls.is_empty() => Finish::Stop,
            Some("stop" | "tool_calls") | None => Finish::ToolCalls,
            Some("length") => Finish::Length,
            Some(other) => Finish::Other(other.to_owned()),
        };
        parts.append(&mut self.calls);
        Response { answer: Answer { parts }, finish, usage: self.usage, model: self.model }
    }
}
