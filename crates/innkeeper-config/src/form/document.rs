//! The structure of a file: servers, host settings, unknown keys.

use crate::form::dialect;
use crate::form::raw;
use crate::form::unknown_keys;
use crate::text::key_path::KeyPath;
use crate::text::source_text::{Diagnostics, SourceOffset, SourceText};
use crate::text::tree::{self, JsonMember, JsonNode, NodeKind, SourceKey};

/// A file split into its sections.
#[derive(Debug, Default)]
pub(crate) struct ConfigDocument {
    pub(crate) servers: Vec<ServerEntry>,
    pub(crate) host: Option<JsonNode>,
    /// The settings of the gateway, with the position of the key.
    pub(crate) serve: Option<JsonMember>,
    pub(crate) extra: Vec<JsonMember>,
}

/// A server entry as written in the file.
#[derive(Debug)]
pub(crate) struct ServerEntry {
    pub(crate) name: String,
    pub(crate) at: SourceOffset,
    /// Key as written in the file: `mcpServers.fs`.
    pub(crate) path: String,
    /// Whether the entry is under `mcpServers`, the key of most other hosts.
    pub(crate) foreign: bool,
    /// Whether the file is of a host with `timeout` in milliseconds.
    pub(crate) milliseconds: bool,
    pub(crate) node: JsonNode,
    /// Unknown keys.
    pub(crate) extra: Vec<JsonMember>,
    /// Whether the name is valid; an entry with an invalid name takes no part in later checks.
    pub(crate) has_valid_name: bool,
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
pub(crate) fn parse_document(root: JsonNode, report: &mut Diagnostics) -> Option<ConfigDocument> {
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
    let switched_off = switched_off(&members);
    let mut document = ConfigDocument::default();
    let mut has_servers = false;
    for member in members {
        if let Some((keys, servers)) = server_section(&member) {
            has_servers = true;
            let path = keys
                .iter()
                .fold(String::new(), |path, key| KeyPath::from_prefix(&path).key(key).to_string());
            let foreign = matches!(keys, ["mcpServers" | "amp.mcpServers"]);
            let servers = servers.clone();
            document.add_servers(servers, &KeyPath::from_prefix(&path), foreign, report);
            continue;
        }
        match member.key.as_str() {
            "host" => document.host = Some(member.value),
            "serve" => document.serve = Some(member),
            "$schema" => {}
            _ => document.add_extra_key(member, settings, report),
        }
    }
    document.servers.iter_mut().filter(|entry| switched_off(&entry.name)).for_each(disable);
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
        let milliseconds = has_name(report.source().name(), dialect::MILLISECOND_FILES);
        let members = match node.kind {
            NodeKind::Object(members) => members,
            NodeKind::Array(items) if foreign => named_servers(items, key_path, report),
            _ => {
                report.error(node.at, key_path, "expected object");
                return;
            }
        };
        for member in members {
            let path = member.key_path(key_path).to_string();
            self.servers.push(ServerEntry {
                name: member.key,
                at: member.at,
                path,
                foreign,
                milliseconds,
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
    !members.is_empty()
        && members.iter().all(|member| {
            !raw::TOP_LEVEL_KEYS.contains(&member.key.as_str())
                && SERVER_KEYS.iter().any(|key| member.value.get(key).is_some())
        })
}

/// Returns the servers of a top-level member, with the keys that lead to them.
fn server_section(member: &JsonMember) -> Option<(&'static [&'static str], &JsonNode)> {
    let keys: &[&str] = match member.key.as_str() {
        "servers" => &["servers"],
        "mcpServers" => &["mcpServers"],
        "amp.mcpServers" => &["amp.mcpServers"],
        "mcp.servers" => &["mcp.servers"],
        "mcp" => &["mcp", "servers"],
        // devcontainer.json
        "customizations" => &["customizations", "vscode", "mcp", "servers"],
        _ => return None,
    };
    Some((
        keys,
        keys[1..].iter().try_fold(&member.value, |node, key| {
            JsonNode::get(node, key).map(|member| &member.value)
        })?,
    ))
}

/// Returns whether this is the server section of an editor's settings.
fn is_settings_section(member: &JsonMember) -> bool {
    server_section(member).is_some() && !matches!(member.key.as_str(), "servers" | "mcpServers")
}

/// Returns whether the settings of Gemini CLI, `mcp.allowed` and `mcp.excluded`, turn a server off.
fn switched_off(members: &[JsonMember]) -> impl Fn(&str) -> bool + use<> {
    let mcp = members.iter().find(|member| member.key == "mcp");
    let names = |key| {
        let list = &mcp?.value.get(key)?.value;
        Some(list.items().iter().filter_map(JsonNode::as_str).map(str::to_owned).collect())
    };
    let allowed: Option<Vec<String>> = names("allowed");
    let excluded: Vec<String> = names("excluded").unwrap_or_default();
    move |name| {
        let is_in = |names: &Vec<String>| names.iter().any(|listed| listed == name);
        is_in(&excluded) || allowed.as_ref().is_some_and(|allowed| !is_in(allowed))
    }
}

fn disable(entry: &mut ServerEntry) {
    let at = entry.at;
    if let NodeKind::Object(members) = &mut entry.node.kind {
        members.retain(|member| !matches!(member.key.as_str(), "disabled" | "enabled"));
        let value = JsonNode { at, kind: NodeKind::Bool(true) };
        let key = "disabled".to_owned();
        members.push(JsonMember { key, source_key: SourceKey::Absent, at, value });
    }
}

/// Returns the servers of a list, whose entries have a `name`.
fn named_servers(
    items: Vec<JsonNode>,
    key_path: &KeyPath<'_>,
    report: &mut Diagnostics,
) -> Vec<JsonMember> {
    let mut servers = Vec::with_capacity(items.len());
    for (index, mut item) in items.into_iter().enumerate() {
        let at = item.at;
        let mut name = None;
        if let NodeKind::Object(members) = &mut item.kind {
            let named = members.iter().position(|member| member.key == "name");
            name = named.map(|named| members.remove(named).value);
        }
        match name.as_ref().and_then(JsonNode::as_str) {
            Some(name) => servers.push(JsonMember {
                key: name.to_owned(),
                source_key: SourceKey::Element(index),
                at,
                value: item,
            }),
            None => report.error(at, key_path.index(index), "expected an object with a `name`"),
        }
    }
    servers
}

fn is_settings_file(source: &str) -> bool {
    has_name(source, dialect::SETTINGS_FILES)
}

fn has_name(source: &str, names: &[&str]) -> bool {
    let name = source.rsplit(['/', '\\']).next().unwrap_or(source);
    names.contains(&name)
}
