//! One step of an answer, as it is put together from its start and what comes after.

use serde_json::value::{RawValue, to_raw_value};

use crate::conversation::{Native, Part, Said, ToolCall};
use crate::provider::Wire;
use crate::provider::codec::{Fault, Fields, Joined, PARTS, object};
use crate::provider::gemini::fault_of;

/// A step so far.
pub(super) struct Step {
    pub(super) kind: Kind,
    /// Nothing more is to come.
    pub(super) stopped: bool,
    /// As it started.
    raw: Box<RawValue>,
    /// The fields of its start, with what came after in their places.
    fields: Vec<(String, Box<RawValue>)>,
    /// Whether anything came after its start.
    grown: bool,
    /// What it says: text, thought or arguments.
    said: String,
    joined: Joined,
    /// The content of an output, or the summary of a thought.
    items: Vec<Item>,
}

/// What a step is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Output,
    Thought,
    Call {
        /// Counts the calls of the answer from 0.
        index: usize,
        name: String,
    },
    Other,
}

/// An item of content.
enum Item {
    /// Text, in however many pieces it came, and the citations in it.
    Text(String, Vec<Box<RawValue>>),
    /// As it came.
    Raw(Box<RawValue>),
}

impl Step {
    /// One that begins, or that is all there.
    ///
    /// # Errors
    ///
    /// It has too many items.
    pub(super) fn start(kind: Kind, raw: &RawValue) -> Result<Self, Fault> {
        let start = Fields::of(raw).unwrap_or_default();
        let fields = start.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut step = Self {
            kind,
            stopped: false,
            raw: raw.to_owned(),
            fields: fields.collect(),
            grown: false,
            said: String::new(),
            joined: Joined::default(),
            items: Vec::new(),
        };
        let items = match &step.kind {
            Kind::Output => start.parts("content")?,
            Kind::Thought => start.parts("summary")?,
            Kind::Call { .. } | Kind::Other => Vec::new(),
        };
        for item in items {
            step.item(item)?;
        }
        step.grown = false;
        Ok(step)
    }

    /// What it says so far: text, thought or arguments, as its kind is.
    pub(super) fn said(&self) -> &str {
        &self.said
    }

    /// Takes text of an output.
    pub(super) fn text(&mut self, more: &str) -> Result<(), Fault> {
        self.grown = true;
        self.said.push_str(more);
        if let Some(Item::Text(text, _)) = self.items.last_mut() {
            text.push_str(more);
            return Ok(());
        }
        self.push(Item::Text(more.to_owned(), Vec::new()))
    }

    /// Takes citations in the text before.
    pub(super) fn citations(&mut self, more: &[&RawValue]) -> Result<(), Fault> {
        self.grown = true;
        if !matches!(self.items.last(), Some(Item::Text(..))) {
            self.push(Item::Text(String::new(), Vec::new()))?;
        }
        if let Some(Item::Text(_, citations)) = self.items.last_mut() {
            citations.extend(more.iter().map(|&it| it.to_owned()));
            if citations.len() > PARTS {
                return Err(Fault::too_many("parts"));
            }
        }
        Ok(())
    }

    /// Takes a piece of arguments; what it says is returned.
    pub(super) fn arguments(&mut self, more: &RawValue) -> String {
        let more = self.joined.string(more).unwrap_or_default();
        self.grown |= !more.is_empty();
        self.said.push_str(&more);
        more
    }

    /// Takes an item of content; what it says is returned.
    pub(super) fn item(&mut self, item: &RawValue) -> Result<String, Fault> {
        self.grown = true;
        let fields = Fields::of(item).unwrap_or_default();
        let text = fields.text("text").unwrap_or_default();
        self.said.push_str(&text);
        let plain = fields.iter().all(|(name, _)| matches!(name, "type" | "text"));
        let joined = self.kind == Kind::Output && plain && fields.get("text").is_some();
        match self.items.last_mut() {
            Some(Item::Text(before, citations)) if joined && citations.is_empty() => {
                before.push_str(&text);
            }
            _ if joined => self.push(Item::Text(text.clone(), Vec::new()))?,
            _ => self.push(Item::Raw(item.to_owned()))?,
        }
        Ok(text)
    }

    /// Takes fields that come in the place of those before.
    pub(super) fn set(&mut self, delta: &Fields<'_>) {
        self.grown = true;
        for (name, value) in delta.iter().filter(|(name, _)| *name != "type") {
            self.put(name, value.to_owned());
        }
    }

    /// Takes a signature. An empty one comes before the one that counts.
    pub(super) fn signature(&mut self, signature: &RawValue) {
        if signature.get() != "\"\"" {
            self.grown = true;
            self.put("signature", signature.to_owned());
        }
    }

    /// The arguments in its start, if none came after.
    pub(super) fn whole_arguments(&mut self) -> Option<String> {
        if !matches!(self.kind, Kind::Call { .. }) || !self.said.is_empty() {
            return None;
        }
        let start = Fields::of(&self.raw).unwrap_or_default();
        let arguments = start.text("arguments").unwrap_or_else(|| {
            start.get("arguments").map_or_else(|| "{}".to_owned(), |it| it.get().to_owned())
        });
        self.said.clone_from(&arguments);
        Some(arguments)
    }

    /// The part of the answer that it is.
    pub(super) fn part(mut self, model: &str) -> Option<Part> {
        let said = match &self.kind {
            Kind::Output => Said::Text(self.said.clone()),
            Kind::Thought => Said::Reasoning(self.said.clone()),
            Kind::Call { name, .. } => Said::Call(ToolCall {
                id: Fields::of(&self.raw).and_then(|it| it.text("id")).unwrap_or_default(),
                name: name.clone(),
                arguments: self.said.clone(),
            }),
            Kind::Other => Said::Other,
        };
        if self.kind == Kind::Output && self.is_plain() {
            return (!self.said.is_empty()).then(|| Part::new(said));
        }
        if self.grown {
            self.grow();
        }
        let (wire, model) = (Wire::GeminiInteractions, model.to_owned());
        let goes_back = self.goes_back();
        let native = Native { wire, model, block: self.raw };
        let native = goes_back.then_some(native);
        Some(Part { said, native })
    }

    /// Whether it is taken back as it came. A result has to name the id of its call, and arguments
    /// have to be an object.
    fn goes_back(&self) -> bool {
        let fields = Fields::of(&self.raw).unwrap_or_default();
        match &self.kind {
            Kind::Call { .. } => {
                let object = fields.get("arguments").is_some_and(|it| it.get().starts_with('{'));
                object && fields.text("id").is_some_and(|id| !id.is_empty())
            }
            Kind::Output | Kind::Thought | Kind::Other => true,
        }
    }

    /// The failure that its provider put into it.
    pub(super) fn failure(&self) -> Option<Fault> {
        let fields = Fields::of(&self.raw)?;
        fields.get("error").map(|_| fault_of(&fields, 500))
    }

    /// Whether it is text and nothing else.
    fn is_plain(&self) -> bool {
        let fields = self.fields.iter().all(|(name, _)| matches!(&**name, "type" | "content"));
        fields && self.items.iter().all(|it| matches!(it, Item::Text(_, more) if more.is_empty()))
    }

    /// Puts what came after the start into the object that the start was.
    fn grow(&mut self) {
        match &self.kind {
            Kind::Output => self.put_items("content"),
            Kind::Thought if !self.items.is_empty() => self.put_items("summary"),
            Kind::Call { .. } => {
                // What is no JSON cannot go back; the call is answered as one that was not read.
                self.put("arguments", object(&self.said));
            }
            Kind::Thought | Kind::Other => {}
        }
        let mut text = String::from("{");
        for (at, (name, value)) in self.fields.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(&quoted(name));
            text.push(':');
            text.push_str(value.get());
        }
        text.push('}');
        if let Ok(raw) = RawValue::from_string(text) {
            self.raw = raw;
        }
    }

    fn put_items(&mut self, name: &str) {
        let items: Vec<_> = self.items.iter().map(Item::written).collect();
        if let Ok(list) = RawValue::from_string(format!("[{}]", items.join(","))) {
            self.put(name, list);
        }
    }

    fn put(&mut self, name: &str, value: Box<RawValue>) {
        match self.fields.iter_mut().find(|(it, _)| it == name) {
            Some((_, before)) => *before = value,
            None => self.fields.push((name.to_owned(), value)),
        }
    }

    fn push(&mut self, item: Item) -> Result<(), Fault> {
        if self.items.len() == PARTS {
            return Err(Fault::too_many("parts"));
        }
        self.items.push(item);
        Ok(())
    }
}

impl Item {
    fn written(&self) -> String {
        match self {
            Self::Raw(raw) => raw.get().to_owned(),
            Self::Text(text, citations) if citations.is_empty() => {
                format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
            }
            Self::Text(text, citations) => {
                let citations: Vec<_> = citations.iter().map(|it| it.get()).collect();
                let (text, citations) = (quoted(text), citations.join(","));
                format!(r#"{{"type":"text","text":{text},"annotations":[{citations}]}}"#)
            }
        }
    }
}

fn quoted(text: &str) -> String {
    to_raw_value(text).map(|raw| raw.get().to_owned()).unwrap_or_default()
}
