//! The structure of a file: servers, host settings, unknown keys.

use super::dialect;
use super::key_path::KeyPath;
use super::raw;
use super::source_text::{Diagnostics, SourceOffset, SourceText};
use super::tree::{self, JsonMember, JsonNode, NodeKind};
use super::unknown_keys;

/// A file split into its sections.
#[derive(Debug, Default)]
pub(super) struct ConfigDocument {
    pub(super) servers: Vec<ServerEntry>,
    pub(super) host: Option<JsonNode>,
    /// The settings of the gateway, with the position of the key.
    pub(super) serve: Option<JsonMember>,
    pub(super) extra: Vec<JsonMember>,
}

/// A server entry as written in the file.
#[derive(Debug)]
pub(super) struct ServerEntry {
    pub(super) name: String,
    pub(super) at: SourceOffset,
    /// Key as written in the file: `mcpServers.fs`.
    pub(super) path: String,
    /// Whether the entry is under `mcpServers`, the key of most other hosts.
    pub(super) foreign: bool,
    pub(super) node: JsonNode,
    /// Unknown keys.
    pub(super) extra: Vec<JsonMember>,
    /// Whether the name is valid; an entry with an invalid name takes no part in later checks.
    pub(super) has_valid_name: bool,
}

/// Returns the names of the servers of a file with this text, also of servers with errors. A text
/// that is not JSON has no servers.
pub fn server_names(text: &str) -> Vec<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut report = Diagnostics::new(SourceText::from_text("", text));
    let root = tree::parse(text, &mut report);
    let document = root.and_then(|root| parse_document(root, &mut report));
    document.into_iter().flat_map(|document| document.servers).map(|entry| entry.name).collect()
}

/// Finds the servers of a file. Reports an error and returns `None` if there is no servers key.
pub(super) fn parse_document(root: JsonNode, report: &mut Diagnostics) -> Option<ConfigDocument> {
    let at = root.at;
    let NodeKind::Object(members) = root.kind else {
        report.error(at, "", "expected object");
        report.hint("write one object: `{\"servers\": {…}}`");
        return None;
    };
    if is_server_map(&members) {
        let mut document = ConfigDocument::default();
        let node = JsonNode { at, kind: NodeKind::Object(members) };
        document.add_servers(node, &KeyPath::root(), true, report);
        return Some(document);
    }
    // Unknown keys in a settings file are not mistakes.
    let settings =
        is_settings_file(report.source().name()) || members.iter().any(is_settings_section);
    let mut document = ConfigDocument::default();
    let mut has_servers = false;
    for member in members {
        let key_path = KeyPath::root();
        match member.key.as_str() {
            "servers" | "mcpServers" => {
                has_servers = true;
                let foreign = member.key == "mcpServers";
                document.add_servers(member.value, &key_path.key(&member.key), foreign, report);
            }
            "mcp" | "mcp.servers" if is_settings_section(&member) => {
                has_servers = true;
                let (outer, servers) = (member.key.clone(), inner_servers(member));
                let outer_trail = key_path.key(&outer);
                let inner_trail = outer_trail.key("servers");
                let key_path = if outer == "mcp" { &inner_trail } else { &outer_trail };
                document.add_servers(servers, key_path, false, report);
            }
            "host" => document.host = Some(member.value),
            "serve" => document.serve = Some(member),
            "$schema" => {}
            _ => document.add_extra_key(member, settings, report),
        }
    }
    if !has_servers {
        report.error(at, "servers", "missing");
        report.hint("put the servers into `servers` or `mcpServers`");
        return None;
    }
    Some(document)
}

impl ConfigDocument {
    fn add_servers(
        &mut self,
        node: JsonNode,
        key_path: &KeyPath<'_>,
        foreign: bool,
        report: &mut Diagnostics,
    ) {
        let NodeKind::Object(members) = node.kind else {
            report.error(node.at, key_path, "expected object");
            return;
        };
        for member in members {
            let path = key_path.key(&member.key).to_string();
            self.servers.push(ServerEntry {
                name: member.key,
                at: member.at,
                path,
                foreign,
                node: member.value,
                extra: Vec::new(),
                has_valid_name: true,
            });
        }
    }

    fn add_extra_key(&mut self, member: JsonMember, settings: bool, report: &mut Diagnostics) {
        if !settings {
            let key_path = KeyPath::root();
            unknown_keys::report_unknown_key(
                &member,
                &key_path.key(&member.key),
                raw::TOP_LEVEL_KEYS,
                report,
            );
        }
        self.extra.push(member);
    }
}

/// Returns whether the whole file is a map of servers.
fn is_server_map(members: &[JsonMember]) -> bool {
    const SERVER_KEYS: [&str; 4] = ["command", "url", "httpUrl", "serverUrl"];
    let is_server =
        |node: &JsonNode| SERVER_KEYS.iter().any(|server_key| node.get(server_key).is_some());
    let is_top_level = |member: &JsonMember| raw::TOP_LEVEL_KEYS.contains(&member.key.as_str());
    !members.is_empty()
        && members.iter().all(|member| !is_top_level(member) && is_server(&member.value))
}

/// Returns whether this is the server section of an editor's settings.
fn is_settings_section(member: &JsonMember) -> bool {
    member.key == "mcp.servers" || (member.key == "mcp" && member.value.get("servers").is_some())
}

fn inner_servers(member: JsonMember) -> JsonNode {
    if member.key == "mcp.servers" {
        return member.value;
    }
    let at = member.value.at;
    let NodeKind::Object(members) = member.value.kind else {
        return JsonNode { at, kind: NodeKind::Null };
    };
    let inner = members.into_iter().find(|inner| inner.key == "servers");
    inner.map_or(JsonNode { at, kind: NodeKind::Null }, |inner| inner.value)
}

fn is_settings_file(source: &str) -> bool {
    let name = source.rsplit(['/', '\\']).next().unwrap_or(source);
    dialect::SETTINGS_FILES.contains(&name)
}
