//! The calls of an answer, put together from what servers send of them.
//!
//! OpenAI sends an index with every piece, and the id and the name with the first. Others send no
//! index, or 0 for every call, no ids, arguments that are an object instead of its text, or the name
//! again with every piece.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::conversation::{Native, Part, Said, ToolCall};
use crate::provider::codec::{Fault, Fields, Joined, PARTS, string};
use crate::provider::openai::{Balance, Members, raw};
use crate::provider::{Piece, Wire};

/// Members of a piece that are read here; all others are kept as the call's own words.
const READ: [&str; 6] = ["index", "id", "type", "function", "name", "arguments"];

#[derive(Default)]
pub(super) struct Calls {
    list: Vec<Call>,
    by_index: HashMap<u64, usize>,
    by_id: HashMap<String, usize>,
}

#[derive(Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
    joined: Joined,
    balance: Balance,
    /// What else its server said of it, as signatures of thoughts.
    more: Members,
    /// Its start was told.
    shown: bool,
}

/// What a piece says.
struct Told<'a> {
    index: Option<u64>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<&'a RawValue>,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether no call lacks its end, as far as its text tells.
    pub(super) fn are_closed(&self) -> bool {
        self.list.iter().all(|call| call.balance.is_closed())
    }

    /// Takes the `tool_calls` of a message, or of a piece of one.
    pub(super) fn take(
        &mut self,
        entries: &[Fields<'_>],
        whole: bool,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Fault> {
        for (at, entry) in entries.iter().enumerate() {
            let told = Told::of(entry);
            // Two entries of one list without indexes are two calls.
            let begins = whole || (at > 0 && told.index.is_none() && told.name.is_some());
            let at = match self.found(&told).filter(|_| !begins) {
                Some(at) => at,
                None => self.begin()?,
            };
            self.add(at, told, entry, pieces);
        }
        Ok(())
    }

    /// The call that a piece goes on with.
    fn found(&self, told: &Told<'_>) -> Option<usize> {
        let by_id = || self.by_id.get(told.id.as_ref()?).copied();
        let at = match told.index {
            Some(index) => match self.by_index.get(&index) {
                Some(at) => *at,
                None => by_id().filter(|_| told.name.is_none())?,
            },
            None if told.id.is_some() => by_id()?,
            None => self.list.len().checked_sub(1)?,
        };
        (!self.list[at].is_another(told)).then_some(at)
    }

    fn begin(&mut self) -> Result<usize, Fault> {
        if self.list.len() == PARTS {
            return Err(Fault::too_many("calls"));
        }
        self.list.push(Call::default());
        Ok(self.list.len() - 1)
    }

    fn add(&mut self, at: usize, told: Told<'_>, entry: &Fields<'_>, pieces: &mut Vec<Piece>) {
        let Told { index, id, name, arguments } = told;
        if let Some(index) = index {
            self.by_index.insert(index, at);
        }
        let call = &mut self.list[at];
        if let Some(id) = id.filter(|_| call.id.is_empty()) {
            self.by_id.insert(id.clone(), at);
            call.id = id;
        }
        if let Some(name) = name.filter(|_| call.name.is_empty()) {
            call.name = name;
        }
        let others = entry.iter().filter(|(name, _)| !READ.contains(name));
        for (name, value) in others.filter_map(|(name, _)| Some((name, entry.get(name)?))) {
            call.more.add(name, &value);
        }
        let text = |raw| call.joined.string(raw).unwrap_or_else(|| raw.get().to_owned());
        let arguments = arguments.map(text).unwrap_or_default();
        call.write(&arguments);
        if call.shown {
            if !arguments.is_empty() {
                pieces.push(Piece::Arguments { index: at, fragment: arguments });
            }
        } else if !call.name.is_empty() {
            call.show(at, pieces);
        }
    }

    /// The model says no more: shows what was not, and gives a call without arguments an object
    /// without members, unless it may have been cut before them.
    pub(super) fn settle(&mut self, cut: bool, pieces: &mut Vec<Piece>) {
        for (index, call) in self.list.iter_mut().enumerate() {
            if !call.shown {
                call.show(index, pieces);
            }
            if call.arguments.trim().is_empty() && !cut {
                call.write("{}");
                pieces.push(Piece::Arguments { index, fragment: "{}".to_owned() });
            }
        }
    }

    pub(super) fn into_parts(self, model: &str) -> impl Iterator<Item = Part> {
        self.list.into_iter().map(move |call| call.into_part(model))
    }
}

impl<'a> Told<'a> {
    fn of(entry: &Fields<'a>) -> Self {
        let function = entry.object("function").unwrap_or_default();
        let arguments = function.get("arguments").or_else(|| entry.get("arguments"));
        Self {
            index: entry.number("index"),
            id: entry.word("id"),
            name: function.word("name").or_else(|| entry.word("name")),
            arguments,
        }
    }

    /// Whether an object begins with this piece of the arguments.
    fn begins_object(&self) -> bool {
        let begins = |text: &str| text.trim_start().starts_with('{');
        self.arguments
            .is_some_and(|raw| string(raw).map_or_else(|| begins(raw.get()), |it| begins(&it)))
    }
}

impl Call {
    /// Whether a piece for the same index begins another call. A new id alone does not: there are
    /// servers that make up one for each piece.
    fn is_another(&self, told: &Told<'_>) -> bool {
        let Some(name) = &told.name else { return false };
        let other_id = told.id.as_ref().is_some_and(|id| !self.id.is_empty() && *id != self.id);
        let other_name = !self.name.is_empty() && *name != self.name;
        let again = told.id.is_none() && self.balance.is_closed() && told.begins_object();
        other_id || other_name || again
    }

    fn write(&mut self, arguments: &str) {
        let mut rest = arguments.as_bytes();
        while let Some(at) = self.balance.push(rest) {
            rest = &rest[at..];
        }
        self.arguments.push_str(arguments);
    }

    fn show(&mut self, index: usize, pieces: &mut Vec<Piece>) {
        self.shown = true;
        pieces.push(Piece::CallStart { index, name: self.name.clone() });
        if !self.arguments.is_empty() {
            pieces.push(Piece::Arguments { index, fragment: self.arguments.clone() });
        }
    }

    /// It goes back in its own words only where no server can choke on them.
    fn into_part(self, model: &str) -> Part {
        let Self { id, name, arguments, more, .. } = self;
        let mut native = None;
        if !id.is_empty() && Fields::parse(&arguments).is_some() {
            let mut words = Members::default();
            words.add("id", &id);
            words.add("type", &"function");
            words.add("function", &serde_json::json!({"name": name, "arguments": arguments}));
            words.append(more);
            let model = model.to_owned();
            native = Some(Native { wire: Wire::OpenAiChat, model, block: raw(&words) });
        }
        Part { said: Said::Call(ToolCall { id, name, arguments }), native }
    }
}
