//! Losses: differences between a lowered schema and the tool's own schema.

use std::collections::HashSet;
use std::fmt;

/// The kind of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SchemaLossKind {
    /// The keyword is removed, and the model gets no hint.
    Dropped,
    /// The keyword is moved from the schema to the description.
    Described,
    /// The lowered schema accepts more values.
    Widened,
    /// The lowered schema accepts fewer values.
    Narrowed,
    /// The keyword is replaced by an equivalent, or by a form that
    /// [`LoweredSchema::restore_arguments`](super::LoweredSchema::restore_arguments) reverses.
    Replaced,
    /// The strict form does not support the keyword, so the whole schema is not strict.
    NotStrict,
}

impl fmt::Display for SchemaLossKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dropped => "dropped",
            Self::Described => "moved into the description",
            Self::Widened => "widened",
            Self::Narrowed => "narrowed",
            Self::Replaced => "replaced",
            Self::NotStrict => "prevents the strict form",
        })
    }
}

/// A difference between a lowered schema and the tool's own schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SchemaLoss {
    /// JSON pointer into the tool's schema. A loss in the target of a `$ref` has the pointer of the
    /// `$ref`.
    pub pointer: String,
    /// The keyword; empty for the whole schema at the pointer.
    pub keyword: String,
    /// Kind of the loss.
    pub kind: SchemaLossKind,
}

impl fmt::Display for SchemaLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, keyword, kind } = self;
        write!(f, "`#{pointer}` `{keyword}`: {kind}")
    }
}

/// Maximum number of listed losses per schema, because a crafted schema can have any number.
pub(super) const MAX_LOSSES: usize = 1000;

/// Collector of losses, without duplicates.
#[derive(Debug, Default)]
pub(super) struct LossCollector {
    pub(super) list: Vec<SchemaLoss>,
    pub(super) omitted: usize,
    seen: HashSet<SchemaLoss>,
}

impl LossCollector {
    pub(super) fn add(&mut self, pointer: &str, keyword: &str, kind: SchemaLossKind) {
        let loss = SchemaLoss { pointer: pointer.to_owned(), keyword: keyword.to_owned(), kind };
        if self.seen.contains(&loss) {
            return;
        }
        if self.list.len() < MAX_LOSSES {
            self.seen.insert(loss.clone());
            self.list.push(loss);
        } else {
            self.omitted += 1;
        }
    }
}
