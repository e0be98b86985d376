//! Maps a path to a value back to its position in the file.

use std::borrow::Cow;

use crate::text::key_path::KeyPath;
use crate::text::source_text::SourceOffset;
use crate::text::tree::JsonNode;

/// One segment of a path, in our spelling of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathSegment<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

impl PathSegment<'_> {
    /// Returns the key, or an empty string for an index.
    pub(crate) fn key_name(&self) -> &str {
        match self {
            Self::Key(key) => key,
            Self::Index(_) => "",
        }
    }
}

pub(crate) fn key_segment(key: &str) -> PathSegment<'_> {
    PathSegment::Key(Cow::Borrowed(key))
}

/// The position of a value and its key as written in the file.
#[derive(Clone, Debug)]
pub(crate) struct KeyLocation {
    pub(crate) at: SourceOffset,
    pub(crate) key: String,
}

/// Returns the location that `segments` lead to from `node`, or of the last segment that exists.
pub(crate) fn locate(node: &JsonNode, path: &str, segments: &[PathSegment<'_>]) -> KeyLocation {
    locate_from(node, segments, &KeyPath::from_prefix(path))
}

fn locate_from(
    node: &JsonNode,
    segments: &[PathSegment<'_>],
    key_path: &KeyPath<'_>,
) -> KeyLocation {
    match segments {
        [PathSegment::Key(key), rest @ ..] => {
            if let Some(member) = node.get(key) {
                return locate_from(&member.value, rest, &member.key_path(key_path));
            }
        }
        [PathSegment::Index(index), rest @ ..] => {
            if let Some(item) = node.items().get(*index) {
                return locate_from(item, rest, &key_path.index(*index));
            }
        }
        [] => {}
    }
    KeyLocation { at: node.at, key: key_path.to_string() }
}
