//! The catalog: an immutable snapshot of all routes by public name.
//!
//! A pure function builds a new catalog whenever the state or the listing of a server changes, and
//! the registry swaps the whole catalog. A look-up needs no lock, no await and no message.

mod catalog_server;
mod entry;
mod excluded_items;
mod items;
mod lookup;
mod pin_mismatch;
mod route;
mod security_warning;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::quality::RandomState;
use indexmap::IndexMap;
use innkeeper_config::name;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::connection::Connection;
use crate::error::{CallError, RoutingError, UnavailableReason};
use crate::guard::{ItemKind, Scanner};
use crate::lifecycle::ServerState;

pub use catalog_server::CatalogServer;
use catalog_server::UnavailableServer;
pub(crate) use entry::{CatalogEntry, Introduction};
pub use items::{
    CatalogPrompt, CatalogResource, CatalogTemplate, CatalogTool, UnavailableCatalogServer,
    UnavailableCatalogTool,
};
pub(crate) use pin_mismatch::{PinMismatch, WithheldTools};
pub(crate) use route::{PromptRoute, ResourceRoute, ToolRoute};
pub use security_warning::SecurityWarning;

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
        for tool in &entry.routes.tools {
            if !self.resolves_to(&tool.public_name, server) {
                continue;
            }
            self.tools.insert(tool.public_name.clone(), tool.clone());
            if let Some(bare) = &mut self.bare_tools {
                bare.entry(tool.name.clone()).or_default().push(tool.clone());
            }
        }
        for prompt in &entry.routes.prompts {
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
        let tools = self.entries().flat_map(|entry| &entry.routes.tools);
        tools
            .filter(|tool| {
                self.tools.get(&tool.public_name).is_some_and(|route| Arc::ptr_eq(route, tool))
            })
            .map(|tool| &*tool.public_name)
    }

    /// Returns the security warnings for a person to review: hidden text in definitions and
    /// instructions, and tool names that resemble the tool names of an earlier server. At most 32
    /// warnings of each kind per server. Each call computes the warnings from the snapshot, without
    /// traffic.
    pub fn warnings(&self) -> Vec<SecurityWarning> {
        let mut all_warnings: Vec<SecurityWarning> =
            self.entries().flat_map(|entry| entry.findings.warnings.iter().cloned()).collect();
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
        self.tools.get(public_name)?.arguments.schema.unusable_reason()
    }

    /// Returns the guard's findings in definitions and instructions that are not withheld
    /// (`guard.definitions` is `flag`). The host also reported each finding as
    /// [`HostEvent::GuardFinding`](crate::HostEvent::GuardFinding).
    pub fn guard_findings(&self) -> Vec<SecurityWarning> {
        self.entries()
            .flat_map(|entry| {
                let server = &entry.connection.server;
                let not_withheld =
                    entry.findings.definitions.iter().filter(|(_, verdict)| !verdict.withheld);
                let each = not_withheld.flat_map(|(item, verdict)| {
                    let server = server.clone();
                    let (tool, item) = ItemKind::split(item.clone());
                    verdict.findings.iter().map(move |finding| SecurityWarning {
                        server: server.clone(),
                        tool: tool.clone(),
                        item: item.clone(),
                        reason: finding.to_string(),
                    })
                });
                each.collect::<Vec<_>>()
            })
            .collect()
    }

    fn entries(&self) -> impl Iterator<Item = &Arc<CatalogEntry>> {
        self.servers.values().filter_map(|server| server.entry.as_ref())
    }

    /// Returns the connection to a server, and the timeout of its requests.
    pub(crate) fn connection(&self, name: &str) -> Result<(&Connection, Duration), CallError> {
        let entry = self.entry(name)?;
        Ok((&entry.connection, entry.config.calls.timeout))
    }

    pub(crate) fn task_scanner(&self, name: &str) -> Result<Option<&Scanner>, CallError> {
        Ok(self.entry(name)?.content_scanners.tasks.as_deref())
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
                (prompt, entry.excluded.prompt_reason(prompt).is_some())
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
}

/// Returns the error for a request to an unavailable server. The request is not sent.
fn unavailable_error(server: &Arc<str>, unavailable: &UnavailableServer) -> CallError {
    let server = server.clone();
    let reason = unavailable.reason.clone();
    CallError::Unavailable { server, reason, may_have_run: false, attempts: 0 }
}

impl Serialize for Catalog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("servers", &self.servers)?;
        map.end()
    }
}
