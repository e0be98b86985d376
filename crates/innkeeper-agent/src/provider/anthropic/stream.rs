//! An answer that comes as events.

use serde::Serialize;
use serde::ser::Serializer;
use serde_json::value::{RawValue, to_raw_value};

use super::answer::{Counts, finish};
use super::block::{self, Kind};
use super::fault;
use crate::conversation::{Answer, Part, Said};
use crate::provider::codec::{Events, Fault, Fields, Joined, PARTS, Reader, arguments, is_json};
use crate::provider::{Piece, Response};

/// Events that have to be readable; others may be new, and are passed over.
const KNOWN: &[&str] = &[
    "message",
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
];

/// The reader of a stream.
pub(super) struct Stream {
    events: Events,
    message: Message,
}

/// The answer as far as it came.
struct Message {
    asked: String,
    blocks: Vec<Open>,
    calls: usize,
    counts: Counts,
    model: Option<String>,
    reason: Option<String>,
    stopped: bool,
}

/// A block as far as it came.
struct Open {
    kind: Kind,
    /// What deltas name it by.
    index: Option<u64>,
    /// What it began with.
    members: Vec<(String, Box<RawValue>)>,
    /// What is written in it: text, a thought, or the text of an input.
    text: String,
    joined: Joined,
    signature: Option<String>,
    citations: Vec<Box<RawValue>>,
    /// Which call of the answer it is, if it is one.
    call: usize,
    /// A delta came that is not known: the block is not put together here.
    strange: bool,
    closed: bool,
}

impl Stream {
    pub(super) fn new(asked: String) -> Self {
        let message = Message {
            asked,
            blocks: Vec::new(),
            calls: 0,
            counts: Counts::default(),
            model: None,
            reason: None,
            stopped: false,
        };
        Self { events: Events::new(), message }
    }
}

impl Reader for Stream {
    fn push(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let Self { events, message } = self;
        let taken = events.push(bytes, |name, data| message.event(name, data, pieces));
        taken.map_err(|fault| Fault { written: Some(message.written()), ..fault })
    }

    fn is_over(&self) -> bool {
        self.message.stopped
    }

    fn end(self: Box<Self>) -> Result<Response, Fault> {
        let message = self.message;
        // What follows the reason is no more than the good-bye.
        if !message.stopped && message.reason.is_none() {
            return Err(Fault::broken_off(message.written()));
        }
        Ok(message.response())
    }
}

impl Message {
    fn event(&mut self, name: &str, data: &str, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        if self.stopped {
            return Ok(());
        }
        let Some(event) = Fields::parse(data) else {
            let matters = name == "error" || (KNOWN.contains(&name) && data.trim() != "[DONE]");
            return if matters { Err(unreadable(name, data)) } else { Ok(()) };
        };
        if name == "error" {
            return Err(fault::told(None, &event));
        }
        let kind = event.text("type").unwrap_or_else(|| name.to_owned());
        match kind.as_str() {
            "message_start" => self.start(&event),
            "content_block_start" => self.open(&event, pieces)?,
            "content_block_delta" => self.delta(&event, pieces)?,
            "content_block_stop" => {
                if let Some(at) = self.place(event.number("index")) {
                    self.blocks[at].close(pieces);
                }
            }
            "message_delta" => {
                let delta = event.object("delta");
                self.reason = delta.and_then(|it| it.text("stop_reason")).or(self.reason.take());
                self.count(&event);
            }
            "message_stop" => self.stopped = true,
            "error" => return Err(fault::told(None, &event)),
            _ if event.object("error").is_some() => return Err(fault::told(None, &event)),
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, event: &Fields<'_>) {
        let Some(message) = event.object("message") else { return };
        self.model = message.text("model");
        self.count(&message);
    }

    fn count(&mut self, told: &Fields<'_>) {
        if let Some(usage) = told.object("usage") {
            self.counts.take(&usage);
        }
    }

    fn open(&mut self, event: &Fields<'_>, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let raw = event.get("content_block").map_or("{}", RawValue::get);
        self.begin(event.number("index"), raw, pieces)
    }

    fn begin(
        &mut self,
        index: Option<u64>,
        raw: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Fault> {
        if self.blocks.len() == PARTS {
            return Err(Fault::too_many("parts"));
        }
        let Some(members) = Fields::parse(raw) else {
            return Err(unreadable("content_block_start", raw));
        };
        let kind = Kind::of(&members);
        let mut block = Open {
            kind,
            index,
            members: members.iter().map(|(name, raw)| (name.to_owned(), raw.to_owned())).collect(),
            text: String::new(),
            joined: Joined::default(),
            signature: None,
            citations: Vec::new(),
            call: self.calls,
            strange: false,
            closed: false,
        };
        match kind {
            Kind::Text => block.write(members.text("text"), pieces),
            Kind::Thinking => block.write(members.text("thinking"), pieces),
            Kind::Call => {
                let name = members.text("name").unwrap_or_default();
                pieces.push(Piece::CallStart { index: self.calls, name });
                self.calls += 1;
            }
            Kind::Hidden | Kind::Other => {}
        }
        self.blocks.push(block);
        Ok(())
    }

    /// The block that an event is about: the last one where it does not say.
    fn place(&self, index: Option<u64>) -> Option<usize> {
        match index {
            Some(_) => self.blocks.iter().rposition(|block| block.index == index),
            None => self.blocks.len().checked_sub(1),
        }
    }

    fn delta(&mut self, event: &Fields<'_>, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let Some(delta) = event.object("delta") else { return Ok(()) };
        let kind = delta.text("type").unwrap_or_default();
        let index = event.number("index");
        let at = match self.place(index) {
            Some(at) => at,
            None => {
                // Its beginning did not come: text needs none.
                let raw = match kind.as_str() {
                    "text_delta" => r#"{"type":"text"}"#,
                    "thinking_delta" => r#"{"type":"thinking"}"#,
                    "input_json_delta" => {
                        return Err(Fault::unreadable("arguments of a call that did not begin"));
                    }
                    _ => return Ok(()),
                };
                self.begin(index, raw, pieces)?;
                self.blocks.len() - 1
            }
        };
        self.blocks[at].take(&kind, &delta, pieces);
        Ok(())
    }

    /// All text for the reader so far.
    fn written(&self) -> String {
        let texts = self.blocks.iter().filter(|block| block.kind == Kind::Text);
        texts.map(|block| block.text.as_str()).collect()
    }

    fn response(self) -> Response {
        let cut = self
            .blocks
            .iter()
            .any(|block| block.kind == Kind::Call && !block.closed && !is_json(&block.text));
        let asked = self.asked;
        let parts: Vec<Part> = self.blocks.into_iter().map(|block| block.part(&asked)).collect();
        Response {
            finish: finish(self.reason.as_deref(), &parts, cut),
            answer: Answer { parts },
            usage: self.counts.usage(),
            model: self.model,
        }
    }
}

impl Open {
    fn take(&mut self, kind: &str, delta: &Fields<'_>, pieces: &mut Vec<Piece>) {
        match (kind, self.kind) {
            ("text_delta", Kind::Text) => {
                let more = self.joined.text(delta, "text");
                self.write(more, pieces);
            }
            ("thinking_delta", Kind::Thinking) => {
                let more = self.joined.text(delta, "thinking");
                self.write(more, pieces);
            }
            ("input_json_delta", Kind::Call | Kind::Other) => {
                let more = self.joined.text(delta, "partial_json");
                self.write(more, pieces);
            }
            ("signature_delta", Kind::Thinking) => self.signature = delta.text("signature"),
            ("citations_delta", Kind::Text) => {
                self.citations.extend(delta.get("citation").map(ToOwned::to_owned));
            }
            _ => self.strange = true,
        }
    }

    fn write(&mut self, text: Option<String>, pieces: &mut Vec<Piece>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        self.text.push_str(&text);
        match self.kind {
            Kind::Text => pieces.push(Piece::Text(text)),
            Kind::Thinking => pieces.push(Piece::Reasoning(text)),
            Kind::Call => pieces.push(Piece::Arguments { index: self.call, fragment: text }),
            Kind::Hidden | Kind::Other => {}
        }
    }

    fn close(&mut self, pieces: &mut Vec<Piece>) {
        self.closed = true;
        if self.kind == Kind::Call && self.text.trim().is_empty() {
            let input = self.members.iter().rfind(|(name, _)| name == "input");
            let written = arguments(input.map(|(_, raw)| &**raw));
            self.write(Some(written), pieces);
        }
    }

    fn part(mut self, model: &str) -> Part {
        let raw = self.assemble();
        let said = match self.kind {
            Kind::Text => Said::Text(self.text),
            Kind::Thinking => Said::Reasoning(self.text),
            Kind::Hidden => Said::Reasoning(String::new()),
            Kind::Call => {
                let raw = to_raw_value(&Object(&self.members)).unwrap_or_default();
                let Some(block) = Fields::of(&raw) else { return Part::new(Said::Other) };
                Said::Call(block::call(&block, self.text))
            }
            Kind::Other => Said::Other,
        };
        block::part(said, raw, model)
    }

    /// The block as it would have come whole; `None` where it cannot be told.
    fn assemble(&mut self) -> Option<Box<RawValue>> {
        match self.kind {
            Kind::Text => {
                self.set("text", to_raw_value(&self.text).ok()?);
                if !self.citations.is_empty() {
                    self.set("citations", to_raw_value(&self.citations).ok()?);
                }
            }
            Kind::Thinking => {
                self.set("thinking", to_raw_value(&self.text).ok()?);
                if let Some(signature) = self.signature.take() {
                    self.set("signature", to_raw_value(&signature).ok()?);
                }
            }
            Kind::Call | Kind::Other => {
                if !self.text.is_empty() {
                    let input = RawValue::from_string(self.text.trim().to_owned()).ok()?;
                    self.set("input", input);
                }
                if self.strange && self.kind == Kind::Other {
                    return None;
                }
            }
            Kind::Hidden => {}
        }
        to_raw_value(&Object(&self.members)).ok()
    }

    fn set(&mut self, name: &str, value: Box<RawValue>) {
        match self.members.iter_mut().rfind(|(known, _)| known == name) {
            Some((_, place)) => *place = value,
            None => self.members.push((name.to_owned(), value)),
        }
    }
}

struct Object<'a>(&'a [(String, Box<RawValue>)]);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

fn unreadable(name: &str, data: &str) -> Fault {
    let shown: String = data.chars().take(200).collect();
    Fault::unreadable(format!("the event `{name}` cannot be read: {shown}"))
}
