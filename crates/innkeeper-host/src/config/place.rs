//! From the way to a value back to where it stands in the file.

use std::borrow::Cow;

use super::source::Offset;
use super::trail::Trail;
use super::tree::Node;

/// One step from a value into it, by our own spelling of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

impl Step<'_> {
    /// The key, where it is one.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Key(key) => key,
            Self::Index(_) => "",
        }
    }
}

/// The step to a key.
pub(super) fn key(key: &str) -> Step<'_> {
    Step::Key(Cow::Borrowed(key))
}

/// Where a value begins and what its key is called in the file.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) at: Offset,
    pub(super) key: String,
}

/// The place that `steps` lead to from `node`, or the last part of the way that is there.
pub(super) fn locate(node: &Node, path: &str, steps: &[Step<'_>]) -> Place {
    go(node, steps, &Trail::from(path))
}

fn go(node: &Node, steps: &[Step<'_>], trail: &Trail<'_>) -> Place {
    match steps {
        [Step::Key(key), rest @ ..] => {
            if let Some(member) = node.get(key) {
                return go(&member.value, rest, &member.trail(trail));
            }
        }
        [Step::Index(index), rest @ ..] => {
            if let Some(item) = node.items().get(*index) {
                return go(item, rest, &trail.index(*index));
            }
        }
        [] => {}
    }
    Place { at: node.at, key: trail.to_string() }
}
