//! Thoughts in OpenRouter's form: a list of which each piece of a stream brings some, and which goes
//! back whole.

use serde_json::value::RawValue;

use crate::provider::codec::{Fault, Fields, PARTS, string};
use crate::provider::openai::Members;

/// What grows with each piece of the same detail.
const GROWING: [&str; 3] = ["text", "summary", "data"];

/// The details so far.
#[derive(Default)]
pub(super) struct Details {
    closed: Vec<Members>,
    open: Option<Open>,
}

/// The detail that the next piece may belong to.
struct Open {
    members: Members,
    grown: [String; GROWING.len()],
}

impl Details {
    pub(super) fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.open.is_none()
    }

    /// Takes one detail or a piece of one: it belongs to the one before if both have the same index
    /// and the same type. Details without an index are whole.
    pub(super) fn take(&mut self, detail: &RawValue) -> Result<(), Fault> {
        let Some(fields) = Fields::of(detail) else { return Ok(()) };
        let same = |open: &&mut Open| {
            fields.get("index").is_some()
                && ["index", "type"].iter().all(|name| {
                    open.members.get(name).map(RawValue::get) == fields.get(name).map(RawValue::get)
                })
        };
        if self.open.as_mut().filter(same).is_none() {
            self.close();
            if self.closed.len() == PARTS {
                return Err(Fault::too_many("thoughts"));
            }
            let grown = Default::default();
            self.open = Some(Open { members: Members::default(), grown });
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        for (name, value) in fields.iter().filter(|(_, value)| value.get() != "null") {
            let growing = GROWING.iter().position(|it| *it == name);
            match (growing, string(value)) {
                (Some(at), Some(more)) => {
                    open.grown[at].push_str(&more);
                    // It keeps its place among the members.
                    open.members.add(name, &"");
                }
                _ => open.members.add(name, &value),
            }
        }
        Ok(())
    }

    /// All of them, in their order.
    pub(super) fn finish(mut self) -> Vec<Members> {
        self.close();
        self.closed
    }

    fn close(&mut self) {
        let Some(Open { mut members, grown }) = self.open.take() else { return };
        for (name, text) in GROWING.iter().zip(grown) {
            if !text.is_empty() {
                members.set(name, &text);
            }
        }
        self.closed.push(members);
    }
}
