//! The catalog: an immutable snapshot of all routes by public name.
//!
//! A pure function builds a new catalog whenever the state or the listing of a server changes, and
//! the registry swaps the whole catalog. A look-up needs no lock, no await and no message.

mod entry;
mod excluded_items;
mod items;
mod pin_mismatch;
mod route;
mod security_warning;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::quality::RandomState;
use indexmap::IndexMap;
use innkeeper_config::name;
use innkeeper_protocol::Era;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::connection::Connection;
use crate::connection::list_ttls::ListCacheHints;
use crate::connection::listing::ServerListing;
use crate::error::{CallError, RoutingError, UnavailableReason};
use crate::guard::{Finding, ItemKind, Scanner};
use crate::lifecycle::ServerState;

pub(crate) use entry::{CatalogEntry, ExcludedTool};
pub use items::{
    CatalogPrompt, CatalogResource, CatalogTemplate, CatalogTool, UnavailableCatalogServer,
    UnavailableCatalogTool,
};
pub(crate) use pin_mismatch::{PinMismatch, WithheldTools};
pub(crate) use route::{PromptRoute, ResourceRoute, ToolRoute};
pub use security_warning::SecurityWarning;

/// One server in the catalog.
#[derive(Clone, Debug)]
pub struct CatalogServer {
    pub(crate) name: Arc<str>,
    pub(crate) state: ServerState,
    pub(crate) transport: &'static str,
    pub(crate) unavailable_reason: Option<UnavailableReason>,
    pub(crate) entry: Option<Arc<CatalogEntry>>,
}

impl CatalogServer {
    /// Returns the state of the server at the time of the snapshot.
    pub fn state(&self) -> ServerState {
        self.state
    }

    /// Returns the transport, for example `stdio`.
    pub fn transport(&self) -> &'static str {
        self.transport
    }

    /// Returns the negotiated protocol revision, or `None` if the server is not ready.
    pub fn protocol_version(&self) -> Option<&'static str> {
        self.entry.as_ref().map(|entry| entry.connection.negotiated.revision.as_str())
    }

    /// Returns `serverInfo` as the server sent it. The content is a claim, not a verified identity.
    pub fn server_info(&self) -> Option<&RawValue> {
        self.entry.as_ref()?.server_info.as_deref()
    }

    /// Returns the capabilities that the server declares, byte for byte, or `None` if the server is
    /// not ready. The content is a claim of the server.
    pub fn capabilities(&self) -> Option<&RawValue> {
        self.entry.as_ref().map(|entry| &*entry.connection.negotiated.capabilities)
    }

    /// Returns the server's instructions for a model, or `None` while a pin or the guard withholds
    /// them.
    pub fn instructions(&self) -> Option<&str> {
        let entry = self.entry.as_ref().filter(|entry| !entry.instructions_withheld)?;
        entry.instructions.as_deref()
    }

    /// Returns the tools, prompts, resources and templates, or `None` if the server is not ready.
    pub fn listing(&self) -> Option<&ServerListing> {
        self.entry.as_ref().map(|entry| &entry.listing)
    }

    /// Returns the cache hints of the last read of each list, as of now: a list that is read again
    /// without a change has a new lifetime in the same catalog. Returns `None` for a server of the
    /// legacy era, which sends no hints, and for a server that is not ready.
    pub fn list_cache_hints(&self) -> Option<ListCacheHints> {
        let connection = &self.entry.as_ref()?.connection;
        let is_modern = connection.negotiated.revision.era() == Era::Modern;
        is_modern.then(|| connection.list_ttls.hints())
    }

    /// Returns the number of the connection, which no other connection of the process has, or `None`
    /// if the server is not ready. A server that restarts has a new connection.
    pub fn connection_number(&self) -> Option<u64> {
        self.entry.as_ref().map(|entry| entry.connection.number.0)
    }
}

impl Serialize for CatalogServer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nothing = ServerListing::default();
        let lists = self.listing().unwrap_or(&nothing);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("state", &self.state)?;
        map.serialize_entry("protocolVersion", &self.protocol_version())?;
        map.serialize_entry("transport", self.transport)?;
        map.serialize_entry("serverInfo", &self.server_info())?;
        if let Some(instructions) = self.instructions() {
            map.serialize_entry("instructions", instructions)?;
        }
        map.serialize_entry("tools", &lists.tools)?;
        map.serialize_entry("prompts", &lists.prompts)?;
        map.serialize_entry("resources", &lists.resources)?;
        map.serialize_entry("resourceTemplates", &lists.resource_templates)?;
        if !lists.missing.is_empty() {
            map.serialize_entry("missing", &lists.missing)?;
        }
        map.end()
    }
}

/// A server that accepts no calls.
#[derive(Debug)]
struct UnavailableServer {
    reason: UnavailableReason,
    /// The last entry of the server while it was ready.
    entry: Option<Arc<CatalogEntry>>,
}

/// A snapshot of all servers that accept calls, with their listings. Unavailable and stopped
/// servers are not included (FR6.7).
#[derive(Debug, Default)]
pub struct Catalog {
    servers: IndexMap<Arc<str>, CatalogServer>,
    unavailable: IndexMap<Arc<str>, UnavailableServer>,
    tools: HashMap<Box<str>, Arc<ToolRoute>, RandomState>,
    prompts: HashMap<Box<str>, Arc<PromptRoute>, RandomState>,
    resources: HashMap<Box<str>, Vec<ResourceRoute>, RandomState>,
    bare_tools: Option<HashMap<Box<str>, Vec<Arc<ToolRoute>>, RandomState>>,
}

impl Catalog {
    /// Builds a snapshot of `servers` in the given order.
    pub(crate) fn build(servers: Vec<CatalogServer>, allow_bare_names: bool) -> Self {
        let mut catalog =
            Self { bare_tools: allow_bare_names.then(HashMap::default), ..Self::default() };
        for server in servers {
            if server.entry.is_some() && server.state == ServerState::Ready {
                catalog.servers.insert(server.name.clone(), server);
                continue;
            }
            let reason = server.unavailable_reason.unwrap_or(match server.state {
                ServerState::Starting => UnavailableReason::Starting { after: None },
                ServerState::Shutdown => UnavailableReason::Shutdown,
                ServerState::Ready | ServerState::Unavailable => UnavailableReason::ClosedOutput,
            });
            catalog
                .unavailable
                .insert(server.name, UnavailableServer { reason, entry: server.entry });
        }
        let ready = catalog.servers.values();
        let entries: Vec<_> =
            ready.filter_map(|server| Some((server.name.clone(), server.entry.clone()?))).collect();
        for (server, entry) in entries {
            catalog.add_entry(&server, &entry);
        }
        catalog
    }

    /// Returns whether calls find this server starting.
    pub(crate) fn is_starting(&self, name: &str) -> bool {
        let server = self.unavailable.get(name);
        server.is_some_and(|server| matches!(server.reason, UnavailableReason::Starting { .. }))
    }

    fn is_server(&self, name: &str) -> bool {
        self.servers.contains_key(name) || self.unavailable.contains_key(name)
    }

    /// Returns whether a public name belongs to this server. With servers `a` and `a.b`, the name
    /// `a.b.c` never belongs to `a`, even while `a.b` is unavailable.
    fn resolves_to(&self, public: &str, server: &str) -> bool {
        name::split_name(public, |name| self.is_server(name))
            .is_some_and(|(owner, _)| owner == server)
    }

    fn add_entry(&mut self, server: &Arc<str>, entry: &Arc<CatalogEntry>) {
        for tool in &entry.tools {
            if !self.resolves_to(&tool.public_name, server) {
                continue;
            }
            self.tools.insert(tool.public_name.clone(), tool.clone());
            if let Some(bare) = &mut self.bare_tools {
                bare.entry(tool.name.clone()).or_default().push(tool.clone());
            }
        }
        for prompt in &entry.prompts {
            let public = name::public_name(server, &prompt.name);
            if self.resolves_to(&public, server) {
                self.prompts.insert(public, prompt.clone());
            }
        }
        for resource in &entry.listing.resources {
            let owners = self.resources.entry(resource.view.uri.as_str().into()).or_default();
            owners.push(entry.resource_route());
        }
    }

    /// Returns the servers that accept calls, in the order of the configuration.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &CatalogServer)> {
        self.servers.iter().map(|(name, server)| (&**name, server))
    }

    /// Returns a server by name, if the server accepts calls.
    pub fn server(&self, name: &str) -> Option<&CatalogServer> {
        self.servers.get(name)
    }

    /// Returns a catalog of one server that accepts calls, with the same public names as in this
    /// catalog.
    pub fn only(&self, name: &str) -> Option<Self> {
        let (kept, _) = self.servers.get_key_value(name)?;
        let servers = self.servers.values().map(|server| {
            let is_kept = server.name == *kept;
            let entry = server.entry.clone().filter(|_| is_kept);
            let state = if is_kept { server.state } else { ServerState::Shutdown };
            CatalogServer { entry, state, ..server.clone() }
        });
        let others = self.unavailable.keys().map(|name| CatalogServer {
            name: name.clone(),
            state: ServerState::Shutdown,
            transport: "unknown",
            unavailable_reason: None,
            entry: None,
        });
        Some(Self::build(servers.chain(others).collect(), false))
    }

    /// Returns the public names of all callable tools, in the order of [`Self::tools`].
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        let tools = self.entries().flat_map(|entry| &entry.tools);
        let is_routed = |tool: &&Arc<ToolRoute>| {
            self.tools.get(&tool.public_name).is_some_and(|route| Arc::ptr_eq(route, tool))
        };
        tools.filter(is_routed).map(|tool| &*tool.public_name)
    }

    /// Returns the security warnings for a person to review: hidden text in definitions and
    /// instructions, and tool names that resemble the tool names of an earlier server. At most 32
    /// warnings of each kind per server. Each call computes the warnings from the snapshot, without
    /// traffic.
    pub fn warnings(&self) -> Vec<SecurityWarning> {
        let mut all_warnings: Vec<SecurityWarning> =
            self.entries().flat_map(|entry| entry.warnings.iter().cloned()).collect();
        all_warnings.extend(security_warning::similar_name_warnings(
            self.servers.iter().filter_map(|(name, server)| {
                Some((name, server.listing()?.tools.iter().map(|tool| tool.view.name.as_str())))
            }),
        ));
        all_warnings
    }

    /// Returns why the host sends arguments of a tool without a check: the input schema does not
    /// compile. Compiles the schema.
    pub fn unchecked_arguments_reason(&self, public_name: &str) -> Option<String> {
        self.tools.get(public_name)?.argument_schema.unusable_reason()
    }

    /// Returns the guard's findings in definitions and instructions that are not withheld
    /// (`guard.definitions` is `flag`). The host also reported each finding as
    /// [`HostEvent::GuardFinding`](crate::HostEvent::GuardFinding).
    pub fn guard_findings(&self) -> Vec<SecurityWarning> {
        let entry_findings = |entry: &Arc<CatalogEntry>| {
            let server = &entry.connection.server;
            let not_withheld =
                entry.definition_findings.iter().filter(|(_, verdict)| !verdict.withheld);
            let each = not_withheld.flat_map(|(item, verdict)| {
                let server = server.clone();
                let (tool, item) = ItemKind::split(item.clone());
                let to_warning = move |finding: &Finding| SecurityWarning {
                    server: server.clone(),
                    tool: tool.clone(),
                    item: item.clone(),
                    reason: finding.to_string(),
                };
                verdict.findings.iter().map(to_warning)
            });
            each.collect::<Vec<_>>()
        };
        self.entries().flat_map(entry_findings).collect()
    }

    fn entries(&self) -> impl Iterator<Item = &Arc<CatalogEntry>> {
        self.servers.values().filter_map(|server| server.entry.as_ref())
    }

    /// Returns the route of a tool, or an error with a suggestion.
    pub(crate) fn tool(&self, requested: &str) -> Result<&Arc<ToolRoute>, CallError> {
        if let Some(route) = self.tools.get(requested) {
            return Ok(route);
        }
        if let Some(routes) = self.bare_tools.as_ref().and_then(|bare| bare.get(requested)) {
            return match &routes[..] {
                [only] => Ok(only),
                several => Err(CallError::Routing(RoutingError::Ambiguous {
                    name: requested.into(),
                    candidates: several.iter().map(|route| route.public_name.clone()).collect(),
                })),
            };
        }
        Err(self.lookup_error(ItemKind::Tool, requested, &self.tool_names().collect::<Vec<_>>()))
    }

    /// Returns the route of a prompt, or an error with a suggestion.
    pub(crate) fn prompt(&self, requested: &str) -> Result<&Arc<PromptRoute>, CallError> {
        self.prompts.get(requested).ok_or_else(|| {
            let mut known_names: Vec<&str> = self.prompts.keys().map(|name| &**name).collect();
            known_names.sort_unstable();
            self.lookup_error(ItemKind::Prompt, requested, &known_names)
        })
    }

    /// Returns the server, the tool name on the server and the reason of an excluded tool.
    pub(crate) fn excluded_tool(&self, requested: &str) -> Option<(&str, &str, &str)> {
        let (server, item) = name::split_name(requested, |name| self.is_server(name))?;
        let (server, entry) = self.servers.get_key_value(server)?;
        let mut excluded = entry.entry.as_ref()?.excluded_tools.iter();
        let excluded = excluded.find(|excluded| excluded.tool.view.name == item)?;
        Some((server, &excluded.tool.view.name, &excluded.reason))
    }

    fn lookup_error(&self, kind: ItemKind, requested: &str, known_names: &[&str]) -> CallError {
        let Some((server, item)) = name::split_name(requested, |name| self.is_server(name)) else {
            let has_item =
                |name: &&str| name.len() > requested.len() && ends_with_item(name, requested);
            let candidates = known_names.iter().copied().filter(has_item).map(Into::into);
            let candidates: Vec<Box<str>> = candidates.collect();
            return match &candidates[..] {
                [] | [_] => CallError::Routing(RoutingError::UnknownServer {
                    name: requested.into(),
                    suggestion: candidates
                        .into_iter()
                        .next()
                        .or_else(|| closest(requested, known_names)),
                }),
                _ => CallError::Routing(RoutingError::Ambiguous {
                    name: requested.into(),
                    candidates,
                }),
            };
        };
        if let Some((server, unavailable)) = self.unavailable.get_key_value(server) {
            return unavailable_error(server, unavailable);
        }
        let entry = self.servers.get(server).and_then(|server| server.entry.as_ref());
        let withheld_reason = entry.and_then(|entry| match kind {
            ItemKind::Tool => entry.tool_withheld_reason(item),
            ItemKind::Prompt => entry.prompt_withheld_reason(item),
            ItemKind::Resource | ItemKind::Template => None,
        });
        if let Some(reason) = withheld_reason {
            return exclusion_error(&server.into(), kind, item, reason);
        }
        if let Some(reason) = entry.and_then(|entry| entry.unusable_reason(kind, item)) {
            return CallError::Routing(RoutingError::UnusableItem {
                server: server.into(),
                item_kind: kind.as_str(),
                item: item.into(),
                reason: reason.into(),
            });
        }
        CallError::Routing(RoutingError::UnknownItem {
            server: server.into(),
            item_kind: kind.as_str(),
            item: item.into(),
            suggestion: closest_item(server, item, known_names),
        })
    }

    /// Returns the route of a resource: on the named server, else on the server that lists the URI,
    /// else on the server with a matching template.
    pub(crate) fn resource(
        &self,
        uri: &str,
        server: Option<&str>,
    ) -> Result<ResourceRoute, CallError> {
        if let Some(name) = server {
            return self.resource_on_server(name, uri);
        }
        let listed = self.resources.get(uri).cloned().unwrap_or_default();
        let owners = if listed.is_empty() { self.templates_for(uri) } else { listed };
        match &owners[..] {
            [only] => Ok(only.clone()),
            [] => Err(self.resource_lookup_error(uri)),
            several => Err(CallError::Routing(RoutingError::Ambiguous {
                name: uri.into(),
                candidates: several.iter().map(|route| (*route.connection.server).into()).collect(),
            })),
        }
    }

    /// Returns the servers that list a resource, or, if no server lists the resource, the servers with
    /// a matching template.
    pub fn resource_servers(&self, uri: &str) -> Vec<&str> {
        let listed = self.resources.get(uri).cloned().unwrap_or_default();
        let owners = if listed.is_empty() { self.templates_for(uri) } else { listed };
        let names = owners.iter().filter_map(|route| {
            let (name, _) = self.servers.get_key_value(&route.connection.server)?;
            Some(&**name)
        });
        names.collect()
    }

    fn resource_lookup_error(&self, uri: &str) -> CallError {
        let offered_it = |unavailable: &UnavailableServer| {
            unavailable.entry.as_ref().is_some_and(|entry| entry.has_resource(uri))
        };
        if let Some((server, unavailable)) =
            self.unavailable.iter().find(|(_, unavailable)| offered_it(unavailable))
        {
            return unavailable_error(server, unavailable);
        }
        let refuses = |entry: &Arc<CatalogEntry>| {
            let (kind, reason) = entry.resource_withheld_reason(uri)?;
            Some(exclusion_error(&entry.connection.server, kind, uri, reason))
        };
        if let Some(error) = self.entries().find_map(refuses) {
            return error;
        }
        let resources = self.entries().flat_map(|entry| &entry.listing.resources);
        let known_uris = resources.map(|resource| resource.view.uri.as_str());
        let suggestion = name::closest(uri, known_uris).map(Into::into);
        CallError::Routing(RoutingError::UnknownResource { uri: uri.into(), suggestion })
    }

    /// Returns the connection to a server, and the timeout of its requests.
    pub(crate) fn connection(&self, name: &str) -> Result<(&Connection, Duration), CallError> {
        let entry = self.entry(name)?;
        Ok((&entry.connection, entry.config.timeout))
    }

    /// Returns the scanner for the results of tasks of a server.
    pub(crate) fn task_scanner(&self, name: &str) -> Result<Option<&Scanner>, CallError> {
        Ok(self.entry(name)?.content_scanners.tasks.as_deref())
    }

    fn resource_on_server(&self, name: &str, uri: &str) -> Result<ResourceRoute, CallError> {
        let entry = self.entry(name)?;
        match entry.resource_withheld_reason(uri) {
            Some((kind, reason)) => {
                Err(exclusion_error(&entry.connection.server, kind, uri, reason))
            }
            None => Ok(entry.resource_route()),
        }
    }

    /// Returns the entry of a server that accepts calls, or an error.
    fn entry(&self, name: &str) -> Result<&Arc<CatalogEntry>, CallError> {
        if let Some(entry) = self.servers.get(name).and_then(|server| server.entry.as_ref()) {
            return Ok(entry);
        }
        match self.unavailable.get_key_value(name) {
            Some((server, unavailable)) => Err(unavailable_error(server, unavailable)),
            None => Err(CallError::Routing(RoutingError::UnknownServer {
                name: name.into(),
                suggestion: name::closest(name, self.servers.keys().map(|name| &**name))
                    .map(Into::into),
            })),
        }
    }

    /// Returns the last entry of the unavailable server in `error`, and the server's own name of
    /// the prompt or resource. Returns `None` for a withheld item.
    pub(crate) fn last_entry<'a>(
        &'a self,
        error: &CallError,
        kind: ItemKind,
        requested: &'a str,
    ) -> Option<(&'a CatalogEntry, &'a str)> {
        let CallError::Unavailable { server, .. } = error else { return None };
        let entry = self.unavailable.get(server)?.entry.as_deref()?;
        let (item, withheld) = match kind {
            ItemKind::Tool => return None,
            ItemKind::Prompt => {
                let (_, prompt) = name::split_name(requested, |name| *name == **server)?;
                (prompt, entry.prompt_withheld_reason(prompt).is_some())
            }
            ItemKind::Resource | ItemKind::Template => {
                (requested, entry.resource_withheld_reason(requested).is_some())
            }
        };
        (!withheld).then_some((entry, item))
    }

    /// Resolves when no request is in flight. The caller limits the wait.
    pub(crate) async fn wait_idle(&self) {
        for entry in self.entries() {
            entry.connection.session.idle().await;
        }
    }

    fn templates_for(&self, uri: &str) -> Vec<ResourceRoute> {
        self.entries()
            .filter(|entry| {
                entry.has_template_for(uri) && entry.resource_withheld_reason(uri).is_none()
            })
            .map(|entry| entry.resource_route())
            .collect()
    }
}

/// Returns the error for an item that a pin or the guard withholds.
fn exclusion_error(server: &Arc<str>, kind: ItemKind, item: &str, reason: &str) -> CallError {
    let (server, item, reason) = (server.clone(), item.into(), reason.into());
    CallError::Routing(match kind {
        ItemKind::Tool => RoutingError::ToolWithheld { server, tool: item, reason },
        ItemKind::Prompt | ItemKind::Resource | ItemKind::Template => {
            RoutingError::ItemWithheld { server, item_kind: kind.as_str(), item, reason }
        }
    })
}

/// Returns the error for a request to an unavailable server. The request is not sent.
fn unavailable_error(server: &Arc<str>, unavailable: &UnavailableServer) -> CallError {
    let (server, reason) = (server.clone(), unavailable.reason.clone());
    CallError::Unavailable { server, reason, may_have_run: false, attempts: 0 }
}

fn closest(requested: &str, known_names: &[&str]) -> Option<Box<str>> {
    name::closest(requested, known_names.iter().copied()).map(Into::into)
}

/// Returns whether the public name is a server name, the separator and `requested`.
/// Returns the closest item of the server, otherwise the item of this name on another server. The
/// name of the server is no part of the comparison: a long name makes all its items similar.
fn closest_item(server: &str, item: &str, known_names: &[&str]) -> Option<Box<str>> {
    let own_items = known_names
        .iter()
        .filter_map(|name| name.strip_prefix(server)?.strip_prefix(name::SEPARATOR));
    match name::closest(item, own_items) {
        Some(similar) => Some(name::public_name(server, similar)),
        None => known_names.iter().copied().find(|name| ends_with_item(name, item)).map(Into::into),
    }
}

fn ends_with_item(public: &str, requested: &str) -> bool {
    public.strip_suffix(requested).is_some_and(|server| server.ends_with(name::SEPARATOR))
}

impl Serialize for Catalog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("servers", &self.servers)?;
        map.end()
    }
}
