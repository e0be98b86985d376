//! Walks JSON text member by member, as written, with the path to each member.

use std::borrow::Cow;
use std::ops::ControlFlow;

use innkeeper_protocol::skim::{self, KeyTracker, Token};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathSegment<'j> {
    Name(Cow<'j, str>),
    Index(usize),
}

/// The type of a value, as far as the walk distinguishes types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonType {
    String,
    Array,
    Other,
}

/// A part of a value, with the path to the part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum JsonNode<'p, 'j> {
    /// The start of an object.
    ObjectStart,
    /// A member, before its value; the path is the path of the object.
    Member { name: &'p Cow<'j, str>, value_type: JsonType },
    /// A string as written, with quotes.
    String(&'j str),
    /// The end of an object. Two of its members can have the same name.
    ObjectEnd { has_duplicate: bool },
}

/// Returns the names on the path, outermost first, without indexes.
pub(crate) fn segment_names<'p>(
    segments: &'p [PathSegment<'_>],
) -> impl DoubleEndedIterator<Item = &'p str> {
    segments.iter().filter_map(|segment| match segment {
        PathSegment::Name(name) => Some(&**name).filter(|name| name.parse::<usize>().is_err()),
        PathSegment::Index(_) => None,
    })
}

/// Passes each part of valid JSON text to `visit`, until `visit` returns `Break`. The walk builds
/// no tree: a parsed tree has one member of each name, and the text can have several.
pub(crate) fn walk_json<'j>(
    json: &'j str,
    mut visit: impl FnMut(&[PathSegment<'j>], JsonNode<'_, 'j>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut keys = KeyTracker::default();
    let mut path: Vec<PathSegment<'j>> = Vec::new();
    // The last key, until its value starts.
    let mut key: Option<Cow<'j, str>> = None;
    for token in skim::tokens(json) {
        let value_type = match token {
            Token::Key(raw) => {
                let name = skim::decode_key(raw);
                keys.add_key(name.clone());
                key = Some(name);
                continue;
            }
            Token::ObjectEnd => {
                visit(&path, JsonNode::ObjectEnd { has_duplicate: keys.end_object() })?;
                advance_path(&mut path);
                continue;
            }
            Token::ArrayEnd => {
                // The index after the last item.
                path.pop();
                advance_path(&mut path);
                continue;
            }
            Token::String(_) => JsonType::String,
            Token::ArrayStart => JsonType::Array,
            Token::ObjectStart | Token::Scalar(_) => JsonType::Other,
        };
        if let Some(name) = key.take() {
            visit(&path, JsonNode::Member { name: &name, value_type })?;
            path.push(PathSegment::Name(name));
        }
        match token {
            Token::ObjectStart => {
                keys.start_object();
                visit(&path, JsonNode::ObjectStart)?;
            }
            Token::ArrayStart => path.push(PathSegment::Index(0)),
            Token::String(raw) => {
                visit(&path, JsonNode::String(raw))?;
                advance_path(&mut path);
            }
            Token::Scalar(_) => advance_path(&mut path),
            Token::Key(_) | Token::ObjectEnd | Token::ArrayEnd => {}
        }
    }
    ControlFlow::Continue(())
}

/// Moves the path from a value to the next item, or to the object of the value.
fn advance_path(path: &mut Vec<PathSegment<'_>>) {
    match path.last_mut() {
        Some(PathSegment::Index(at)) => *at += 1,
        Some(PathSegment::Name(_)) => drop(path.pop()),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(json: &str) -> Vec<String> {
        let mut nodes = Vec::new();
        let flow = walk_json(json, |path, node| {
            let path: Vec<String> = path
                .iter()
                .map(|segment| match segment {
                    PathSegment::Name(name) => name.to_string(),
                    PathSegment::Index(at) => at.to_string(),
                })
                .collect();
            let path = path.join("/");
            nodes.push(match node {
                JsonNode::ObjectStart => format!("{path} start"),
                JsonNode::Member { name, .. } => format!("{path} member {name}"),
                JsonNode::String(raw) => format!("{path} string {raw}"),
                JsonNode::ObjectEnd { has_duplicate } => format!("{path} end {has_duplicate}"),
            });
            ControlFlow::Continue(())
        });
        assert_eq!(flow, ControlFlow::Continue(()));
        nodes
    }

    #[test]
    fn each_member_comes_with_its_path_also_if_another_member_has_its_name() {
        let json = r#"{"a":[1,"x",[],{"b":"y","\u0062":null}],"c":"z"}"#;
        let expected = [
            " start",
            " member a",
            "a/1 string \"x\"",
            "a/3 start",
            "a/3 member b",
            "a/3/b string \"y\"",
            "a/3 member b",
            "a/3 end true",
            " member c",
            "c string \"z\"",
            " end false",
        ];
        assert_eq!(nodes(json), expected);
        assert_eq!(
            nodes(r#"["a",["b"],"c"]"#),
            ["0 string \"a\"", "1/0 string \"b\"", "2 string \"c\""]
        );
        assert_eq!(nodes("\"a\""), [" string \"a\""]);
    }

    #[test]
    fn a_walk_ends_where_its_visitor_breaks() {
        let mut count = 0;
        let flow = walk_json(r#"{"a":{"b":{}}}"#, |_, _| {
            count += 1;
            if count == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((flow, count), (ControlFlow::Break(()), 3));
    }
}
