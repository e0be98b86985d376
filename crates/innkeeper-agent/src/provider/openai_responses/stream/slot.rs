//! One item while it comes.

use serde_json::value::RawValue;

use crate::conversation::{Part, Said, ToolCall};
use crate::provider::Piece;
use crate::provider::codec::Joined;
use crate::provider::openai_responses::item::{Item, PARAGRAPH, is_encrypted};

/// What a piece is of; thoughts have numbered paragraphs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Refusal,
    Summary(u64),
    Thought(u64),
    Arguments,
}

#[derive(Default)]
pub(super) struct Slot {
    /// What the pieces were of so far, the last of them.
    kind: Option<Kind>,
    /// All that came in pieces.
    written: String,
    joined: Joined,
    call: Option<Begun>,
    /// The item when it is done.
    item: Option<Part>,
    pub(super) refused: bool,
}

/// A call of which the start was told.
struct Begun {
    index: usize,
    id: String,
    name: String,
}

impl Slot {
    /// Whether the item is not there, or is a thought without the content that this one has: there
    /// are servers that send it with the response alone.
    pub(super) fn lacks(&self, item: &Item) -> bool {
        self.item.as_ref().is_none_or(|it| !is_encrypted(it) && is_encrypted(&item.part))
    }

    pub(super) fn write(&mut self, kind: Kind, delta: &RawValue, pieces: &mut Vec<Piece>) {
        let delta = self.joined.string(delta).unwrap_or_default();
        if delta.is_empty() {
            return;
        }
        let paragraph = match (self.kind, kind) {
            (None, _) | (_, Kind::Text | Kind::Refusal | Kind::Arguments) => false,
            (Some(before), Kind::Summary(_) | Kind::Thought(_)) => before != kind,
        };
        self.kind = Some(kind);
        self.refused |= kind == Kind::Refusal;
        let delta = if paragraph { format!("{PARAGRAPH}{delta}") } else { delta };
        self.written.push_str(&delta);
        match (kind, &self.call) {
            (Kind::Text | Kind::Refusal, _) => pieces.push(Piece::Text(delta)),
            (Kind::Summary(_) | Kind::Thought(_), _) => pieces.push(Piece::Reasoning(delta)),
            (Kind::Arguments, Some(call)) => {
                pieces.push(Piece::Arguments { index: call.index, fragment: delta });
            }
            // Nobody knows yet what is called.
            (Kind::Arguments, None) => {}
        }
    }

    /// Tells the start of a call, with what came before it. `false` if it was told.
    pub(super) fn begin(
        &mut self,
        index: usize,
        id: &str,
        name: &str,
        pieces: &mut Vec<Piece>,
    ) -> bool {
        if self.call.is_some() {
            return false;
        }
        let (id, name) = (id.to_owned(), name.to_owned());
        pieces.push(Piece::CallStart { index, name: name.clone() });
        if !self.written.is_empty() {
            pieces.push(Piece::Arguments { index, fragment: self.written.clone() });
        }
        self.call = Some(Begun { index, id, name });
        true
    }

    /// Takes the item, and tells what its pieces did not. `true` if a call began only now.
    pub(super) fn finish(&mut self, calls: usize, item: Item, pieces: &mut Vec<Piece>) -> bool {
        let Item { part, refused } = item;
        self.refused |= refused;
        let rest = |all: &str| all.strip_prefix(&self.written).unwrap_or_default().to_owned();
        let mut began = false;
        match &part.said {
            Said::Text(text) => {
                let rest = rest(text);
                if !rest.is_empty() {
                    pieces.push(Piece::Text(rest));
                }
            }
            Said::Reasoning(text) => {
                let rest = rest(text);
                if !rest.is_empty() {
                    pieces.push(Piece::Reasoning(rest));
                }
            }
            Said::Call(call) => {
                let fragment = rest(&call.arguments);
                began = self.begin(calls, &call.id, &call.name, pieces);
                let index = self.call.as_ref().map_or(calls, |begun| begun.index);
                if !fragment.is_empty() {
                    pieces.push(Piece::Arguments { index, fragment });
                }
            }
            Said::Other => {}
        }
        self.item = Some(part);
        began
    }

    /// The text for the reader, as far as it came.
    pub(super) fn text(&self) -> &str {
        match self.kind {
            Some(Kind::Text | Kind::Refusal) => &self.written,
            Some(Kind::Summary(_) | Kind::Thought(_) | Kind::Arguments) | None => "",
        }
    }

    /// The item, or what its pieces say where it never came whole.
    pub(super) fn into_part(self) -> Option<Part> {
        if self.item.is_some() {
            return self.item;
        }
        let written = self.written;
        let said = match (self.call, self.kind) {
            (Some(Begun { id, name, .. }), _) => {
                Said::Call(ToolCall { id, name, arguments: written })
            }
            (None, Some(Kind::Text | Kind::Refusal)) => Said::Text(written),
            (None, Some(Kind::Summary(_) | Kind::Thought(_))) => Said::Reasoning(written),
            (None, Some(Kind::Arguments) | None) => return None,
        };
        Some(Part::new(said))
    }
}
