//! The shape of a whole file: where its servers are, what is ours beside them, what is neither.

use super::dialect;
use super::raw;
use super::source::{Offset, Report};
use super::trail::Trail;
use super::tree::{Kind, Member, Node};
use super::unknown;

/// A file cut into its parts.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) servers: Vec<Entry>,
    pub(super) host: Option<Node>,
    pub(super) extra: Vec<Member>,
}

/// One server as the file has it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) at: Offset,
    /// The key as it stands in the file: `mcpServers.fs`.
    pub(super) path: String,
    /// Whether it stands under the key that most other hosts use.
    pub(super) foreign: bool,
    pub(super) node: Node,
    /// Keys without a meaning here.
    pub(super) extra: Vec<Member>,
    /// Whether its name lets it take part at all.
    pub(super) usable: bool,
}

/// Finds the servers of a file; without any place for them there is an error and no document.
pub(super) fn cut(root: Node, report: &mut Report) -> Option<Document> {
    let at = root.at;
    let Kind::Object(members) = root.kind else {
        report.error(at, "", "expected object");
        report.hint("the whole file is one object: `{\"servers\": {…}}`");
        return None;
    };
    if is_bare(&members) {
        let mut document = Document::default();
        let node = Node { at, kind: Kind::Object(members) };
        document.take_servers(node, &Trail::root(), true, report);
        return Some(document);
    }
    // A file of settings is full of keys that are nobody's mistake.
    let settings = is_settings(report.source().name()) || members.iter().any(is_section);
    let mut document = Document::default();
    let mut found = false;
    for member in members {
        let trail = Trail::root();
        match member.key.as_str() {
            "servers" | "mcpServers" => {
                found = true;
                let foreign = member.key == "mcpServers";
                document.take_servers(member.value, &trail.key(&member.key), foreign, report);
            }
            "mcp" | "mcp.servers" if is_section(&member) => {
                found = true;
                let (outer, servers) = (member.key.clone(), inner_servers(member));
                let outer_trail = trail.key(&outer);
                let inner_trail = outer_trail.key("servers");
                let trail = if outer == "mcp" { &inner_trail } else { &outer_trail };
                document.take_servers(servers, trail, false, report);
            }
            "host" => document.host = Some(member.value),
            "$schema" => {}
            _ => document.keep(member, settings, report),
        }
    }
    if !found {
        report.error(at, "servers", "missing");
        report.hint("name the servers in `servers` or `mcpServers`");
        return None;
    }
    Some(document)
}

impl Document {
    fn take_servers(&mut self, node: Node, trail: &Trail<'_>, foreign: bool, report: &mut Report) {
        let Kind::Object(members) = node.kind else {
            report.error(node.at, trail, "expected object");
            return;
        };
        for member in members {
            let path = trail.key(&member.key).to_string();
            self.servers.push(Entry {
                name: member.key,
                at: member.at,
                path,
                foreign,
                node: member.value,
                extra: Vec::new(),
                usable: true,
            });
        }
    }

    fn keep(&mut self, member: Member, settings: bool, report: &mut Report) {
        if !settings {
            let trail = Trail::root();
            unknown::tell(&member, &trail.key(&member.key), raw::TOP_LEVEL_KEYS, report);
        }
        self.extra.push(member);
    }
}

/// Whether the whole file is a map of servers.
fn is_bare(members: &[Member]) -> bool {
    const MARKS: [&str; 4] = ["command", "url", "httpUrl", "serverUrl"];
    let is_server = |node: &Node| MARKS.iter().any(|mark| node.get(mark).is_some());
    let named = |member: &Member| raw::TOP_LEVEL_KEYS.contains(&member.key.as_str());
    !members.is_empty() && members.iter().all(|member| !named(member) && is_server(&member.value))
}

/// Whether this is the part of an editor's settings that names servers.
fn is_section(member: &Member) -> bool {
    member.key == "mcp.servers" || (member.key == "mcp" && member.value.get("servers").is_some())
}

fn inner_servers(member: Member) -> Node {
    if member.key == "mcp.servers" {
        return member.value;
    }
    let at = member.value.at;
    let Kind::Object(members) = member.value.kind else {
        return Node { at, kind: Kind::Null };
    };
    let inner = members.into_iter().find(|inner| inner.key == "servers");
    inner.map_or(Node { at, kind: Kind::Null }, |inner| inner.value)
}

fn is_settings(source: &str) -> bool {
    let name = source.rsplit(['/', '\\']).next().unwrap_or(source);
    dialect::SETTINGS_FILES.contains(&name)
}
