//! One server's entry in other hosts' spelling, put into ours without losing its places.

use std::collections::HashSet;

use super::dialect::{self, Meaning};
use super::document::Entry;
use super::source::Report;
use super::trail::{Trail, shown};
use super::tree::{Kind, Member, Node, Written};

/// Rewrites the entry into the keys, units and shapes that the schema describes.
pub(super) fn normalise(entry: &mut Entry, report: &mut Report) {
    let path = std::mem::take(&mut entry.path);
    let foreign = entry.foreign;
    if let Kind::Object(members) = &mut entry.node.kind {
        let milliseconds =
            members.iter().any(|member| dialect::MILLISECOND_KEYS.contains(&member.key.as_str()));
        let trail = Trail::from(&path);
        read_timeout(members, &trail, Units { foreign, milliseconds }, report);
        rename(members, &trail, report);
        for member in members {
            reshape(member, &trail, report);
        }
    }
    entry.path = path;
}

#[derive(Clone, Copy)]
struct Units {
    /// The entry stands under `mcpServers`.
    foreign: bool,
    /// The entry has a key of a host that counts in milliseconds.
    milliseconds: bool,
}

/// Our seconds are a number like others' milliseconds: tell them apart, and say so.
fn read_timeout(members: &mut [Member], trail: &Trail<'_>, units: Units, report: &mut Report) {
    let Some(member) = members.iter_mut().find(|member| member.key == "timeout") else {
        return;
    };
    let Some(number) = member.value.number() else {
        return;
    };
    let from_host = units.milliseconds && number >= dialect::SHORTEST_IN_MILLISECONDS;
    let from_size = units.foreign && number > dialect::LONGEST_IN_SECONDS;
    if from_host || from_size {
        let seconds = number / 1000.0;
        report.warning(
            member.value.at,
            trail.key("timeout"),
            format!("`{number}` is taken for milliseconds, as other hosts write it"),
        );
        report.hint(format!("write `{seconds}`, in seconds"));
        member.value.kind = Kind::Number(seconds.to_string());
    }
}

fn rename(members: &mut Vec<Member>, trail: &Trail<'_>, report: &mut Report) {
    let (foreign, mut ours): (Vec<_>, Vec<_>) = std::mem::take(members)
        .into_iter()
        .partition(|member| dialect::meaning(&member.key).is_some());
    for member in ours.iter_mut().filter(|member| member.key == "tools") {
        list_of_tools(member);
    }
    let mut implied: Option<Member> = None;
    for member in foreign {
        let at = member.at;
        match dialect::meaning(&member.key) {
            None => ours.push(member),
            Some(Meaning::Key(key)) => place(&mut ours, "", alias(member, key), trail, report),
            Some(Meaning::KeyOf(key, transport)) => {
                let value = Node { at, kind: Kind::Text(transport.to_owned()) };
                implied = Some(alias(Member { value, ..member.clone() }, "type"));
                place(&mut ours, "", alias(member, key), trail, report);
            }
            Some(Meaning::Opposite(key)) => {
                place(&mut ours, "", alias(opposite(member), key), trail, report);
            }
            Some(Meaning::Inside(outer, key)) => {
                place_inside(&mut ours, outer, alias(member, key), trail, report);
            }
        }
    }
    if ours.iter().all(|member| member.key != "type") {
        ours.extend(implied);
    }
    *members = ours;
}

fn opposite(mut member: Member) -> Member {
    if let Kind::Bool(value) = &mut member.value.kind {
        *value = !*value;
    }
    member
}

/// Puts a member into an object one level deeper, which is added where there is none.
fn place_inside(
    members: &mut Vec<Member>,
    outer: &str,
    member: Member,
    trail: &Trail<'_>,
    report: &mut Report,
) {
    // One that is no object is left for the schema to refuse.
    if let Some(known) = members.iter_mut().find(|known| known.key == outer) {
        let path = known.trail(&Trail::root()).to_string();
        if let Kind::Object(inside) = &mut known.value.kind {
            place(inside, &path, member, trail, report);
        }
        return;
    }
    let (at, key) = (member.at, outer.to_owned());
    let value = Node { at, kind: Kind::Object(vec![member]) };
    members.push(Member { key, written: Written::Absent, at, value });
}

fn alias(member: Member, key: &str) -> Member {
    Member { key: key.to_owned(), written: Written::As(member.key), ..member }
}

/// Adds a member unless another spelling of the same key is there already. `path` leads from the
/// entry to these members.
fn place(
    members: &mut Vec<Member>,
    path: &str,
    member: Member,
    trail: &Trail<'_>,
    report: &mut Report,
) {
    match members.iter().find(|other| other.key == member.key) {
        None => members.push(member),
        Some(other) => {
            let other = other.trail(&Trail::from(path)).to_string();
            let message = format!("means the same as `{other}`; keep one of them");
            report.error(member.at, member.trail(trail), message);
        }
    }
}

fn reshape(member: &mut Member, trail: &Trail<'_>, report: &mut Report) {
    match member.key.as_str() {
        "type" => {
            if let Kind::Text(text) = &mut member.value.kind
                && let Some(ours) = dialect::transport(text)
            {
                ours.clone_into(text);
            }
        }
        "sandbox" if is_other_sandbox(&member.value) => {
            let key = std::mem::replace(&mut member.key, dialect::OTHER_SANDBOX.to_owned());
            member.written = Written::As(key);
        }
        "env" => scalars(&mut member.value),
        "headers" => {
            let path = member.trail(trail).to_string();
            header_lines(&mut member.value, &Trail::from(&path), report);
            scalars(&mut member.value);
        }
        _ => {}
    }
}

/// `"tools": ["a"]` is the list of what is allowed.
fn list_of_tools(member: &mut Member) {
    if let Kind::List(_) = &member.value.kind {
        let at = member.value.at;
        let list = Node { at, kind: std::mem::replace(&mut member.value.kind, Kind::Null) };
        let key = "allow".to_owned();
        let allow = Member { key, written: Written::Absent, at, value: list };
        member.value.kind = Kind::Object(vec![allow]);
    }
}

/// Our `sandbox` has no object inside; VS Code's has nothing else.
fn is_other_sandbox(node: &Node) -> bool {
    ["filesystem", "network"]
        .iter()
        .any(|key| node.get(key).is_some_and(|member| member.value.is_object()))
}

/// Numbers and truth values become the text they are written as.
fn scalars(node: &mut Node) {
    if let Kind::Object(members) = &mut node.kind {
        for member in members {
            match &member.value.kind {
                Kind::Number(literal) => member.value.kind = Kind::Text(literal.clone()),
                Kind::Bool(value) => member.value.kind = Kind::Text(value.to_string()),
                Kind::Null | Kind::Text(_) | Kind::List(_) | Kind::Object(_) => {}
            }
        }
    }
}

/// `["Name: value"]` becomes an object.
fn header_lines(node: &mut Node, trail: &Trail<'_>, report: &mut Report) {
    let Kind::List(lines) = &node.kind else {
        return;
    };
    let mut headers: Vec<Member> = Vec::with_capacity(lines.len());
    let mut seen = HashSet::new();
    for (index, line) in lines.iter().enumerate() {
        let trail = trail.index(index);
        match line.text().and_then(|text| text.split_once(':')) {
            Some((name, value)) if seen.insert(name.trim()) => {
                headers.push(Member {
                    key: name.trim().to_owned(),
                    written: Written::Element(index),
                    at: line.at,
                    value: Node { at: line.at, kind: Kind::Text(value.trim().to_owned()) },
                });
            }
            Some((name, _)) => {
                report.error(line.at, trail, format!("duplicate header `{}`", shown(name.trim())));
            }
            None => report.error(line.at, trail, "expected `Name: value`"),
        }
    }
    node.kind = Kind::Object(headers);
}
