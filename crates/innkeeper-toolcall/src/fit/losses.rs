//! What a fitted schema no longer says, told piece by piece.

use std::collections::HashSet;
use std::fmt;

/// What became of one keyword of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// It is gone, and nothing tells the model.
    Dropped,
    /// It is gone from the schema and stands in the description.
    Described,
    /// The schema accepts more than it said.
    Widened,
    /// The schema accepts less than it said.
    Narrowed,
    /// It is said in another way that means the same, or leads back to it.
    Replaced,
    /// It cannot be said in the strict form: the whole schema has the plain one.
    NotStrict,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dropped => "dropped",
            Self::Described => "moved into the description",
            Self::Widened => "widened",
            Self::Narrowed => "narrowed",
            Self::Replaced => "replaced",
            Self::NotStrict => "keeps the schema from being strict",
        })
    }
}

/// One thing that a fitted schema says otherwise than the tool's own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Loss {
    /// Where: a JSON pointer into the tool's schema. What a `$ref` led to is named where it stands.
    pub pointer: String,
    /// Which keyword there; empty for the whole schema at that place.
    pub keyword: String,
    /// What became of it.
    pub change: Change,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, keyword, change } = self;
        write!(f, "`#{pointer}` `{keyword}`: {change}")
    }
}

/// Losses listed for one schema: a schema can be made to lose any number, and nobody reads more.
pub(super) const MOST_LOSSES: usize = 1000;

/// The list while it grows.
#[derive(Debug, Default)]
pub(super) struct Losses {
    pub(super) list: Vec<Loss>,
    pub(super) unlisted: usize,
    seen: HashSet<Loss>,
}

impl Losses {
    pub(super) fn add(&mut self, pointer: &str, keyword: &str, change: Change) {
        let loss = Loss { pointer: pointer.to_owned(), keyword: keyword.to_owned(), change };
        if self.seen.contains(&loss) {
            return;
        }
        if self.list.len() < MOST_LOSSES {
            self.seen.insert(loss.clone());
            self.list.push(loss);
        } else {
            self.unlisted += 1;
        }
    }
}
