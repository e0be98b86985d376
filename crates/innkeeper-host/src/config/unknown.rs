//! Keys that no schema knows: told as warnings, with the key that was probably meant.

use serde_json::{Map, Value};

use super::dialect;
use super::source::Report;
use super::trail::Trail;
use super::tree::{Kind, Member, Node};

/// The candidate most like `name`, if one is near enough to be meant.
pub(super) fn similar<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    // Nobody meant one of ours with a text that long, and comparing it would cost too much.
    if name.len() > crate::name::NAME_LIMIT {
        return None;
    }
    let mut exact = candidates.clone();
    exact
        .find(|candidate| candidate.eq_ignore_ascii_case(name))
        .or_else(|| crate::name::closest(name, candidates))
}

/// Warns about one key.
pub(super) fn tell(
    member: &Member,
    trail: &Trail<'_>,
    known: &[impl AsRef<str>],
    report: &mut Report,
) {
    if dialect::WITHOUT_MEANING.contains(&member.key.as_str()) {
        report.warning(member.at, trail, "has no meaning for this host; it is left out");
        return;
    }
    report.warning(member.at, trail, "unknown key");
    if report.is_full() {
        return;
    }
    if let Some(meant) = similar(&member.key, known.iter().map(AsRef::as_ref)) {
        report.hint(format!("did you mean `{meant}`?"));
    }
}

/// Takes the keys that `schema` does not know out of an entry, with a warning for each, and tells
/// about those further down.
pub(super) fn take(
    node: &mut Node,
    schema: &Value,
    path: &str,
    report: &mut Report,
) -> Vec<Member> {
    walk(node, schema, schema, &Trail::from(path), report);
    let known = properties(schema, schema);
    let Kind::Object(members) = &mut node.kind else {
        return Vec::new();
    };
    let (ours, unknown): (Vec<_>, Vec<_>) = std::mem::take(members)
        .into_iter()
        .partition(|member| known.is_none_or(|known| known.contains_key(&member.key)));
    *members = ours;
    unknown
}

fn walk(node: &Node, schema: &Value, root: &Value, trail: &Trail<'_>, report: &mut Report) {
    let Some(known) = properties(schema, root) else {
        return;
    };
    let names: Vec<&String> = known.keys().collect();
    for member in node.members() {
        let trail = member.trail(trail);
        match known.get(&member.key) {
            Some(schema) => walk(&member.value, schema, root, &trail, report),
            None => tell(member, &trail, &names, report),
        }
    }
}

/// The properties of an object schema that says what they are; maps of free names have none.
fn properties<'s>(schema: &'s Value, root: &'s Value) -> Option<&'s Map<String, Value>> {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = root.pointer(name.strip_prefix('#')?)?;
        return schema["properties"].as_object();
    }
    schema["properties"].as_object()
}
