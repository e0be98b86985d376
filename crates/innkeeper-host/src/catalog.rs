//! What can be called right now: an immutable snapshot from public names to routes.
//!
//! Built by a pure function whenever a server's state or offer changes, and swapped as a whole:
//! finding a route reads it without a lock, an await or a message to anybody.

mod doubt;
mod kept_out;
mod route;
mod shelf;

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::error::{CallError, Lost, RoutingError};
use crate::guard::{Finding, Of};
use crate::lifecycle::ServerState;
use crate::name;
use crate::server::offer::Offer;

pub use doubt::Doubt;
pub(crate) use route::{PromptRoute, ResourceRoute, ToolRoute};
pub(crate) use shelf::{Hidden, Shelf};

/// One server as the catalog shows it.
#[derive(Clone, Debug)]
pub struct CatalogServer {
    pub(crate) name: Arc<str>,
    pub(crate) state: ServerState,
    pub(crate) transport: &'static str,
    pub(crate) lost: Option<Lost>,
    pub(crate) shelf: Option<Arc<Shelf>>,
}

impl CatalogServer {
    /// The state when the snapshot was made.
    pub fn state(&self) -> ServerState {
        self.state
    }

    /// `stdio` and so on.
    pub fn transport(&self) -> &'static str {
        self.transport
    }

    /// The revision agreed on; `None` for a server that is not ready.
    pub fn protocol_version(&self) -> Option<&'static str> {
        self.shelf.as_ref().map(|shelf| shelf.connection.revision.as_str())
    }

    /// `serverInfo` as the server sent it: claims, not identity.
    pub fn server_info(&self) -> Option<&RawValue> {
        self.shelf.as_ref()?.server_info.as_deref()
    }

    /// What the server tells a model about its use; nothing while its pin refuses it.
    pub fn instructions(&self) -> Option<&str> {
        let shelf = self.shelf.as_ref().filter(|shelf| !shelf.instructions_refused)?;
        shelf.instructions.as_deref()
    }

    /// Its tools, prompts, resources and templates; `None` for a server that is not ready.
    pub fn offer(&self) -> Option<&Offer> {
        self.shelf.as_ref().map(|shelf| &shelf.offer)
    }

    /// Why it is unavailable, if it is.
    pub fn unavailable_because(&self) -> Option<String> {
        self.lost.as_ref().map(ToString::to_string)
    }
}

impl Serialize for CatalogServer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nothing = Offer::default();
        let offer = self.offer().unwrap_or(&nothing);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("state", &self.state)?;
        map.serialize_entry("protocolVersion", &self.protocol_version())?;
        map.serialize_entry("transport", self.transport)?;
        map.serialize_entry("serverInfo", &self.server_info())?;
        if let Some(instructions) = self.instructions() {
            map.serialize_entry("instructions", instructions)?;
        }
        if let Some(reason) = self.unavailable_because() {
            map.serialize_entry("reason", &reason)?;
        }
        map.serialize_entry("tools", &offer.tools)?;
        map.serialize_entry("prompts", &offer.prompts)?;
        map.serialize_entry("resources", &offer.resources)?;
        map.serialize_entry("resourceTemplates", &offer.resource_templates)?;
        map.end()
    }
}

/// A server that takes no calls.
#[derive(Debug)]
struct Away {
    lost: Lost,
    /// What it offered while it did.
    shelf: Option<Arc<Shelf>>,
}

/// All servers with everything they offer, as of one moment. Servers that became unavailable or
/// were stopped are not in it (FR6.7).
#[derive(Debug, Default)]
pub struct Catalog {
    servers: IndexMap<Arc<str>, CatalogServer>,
    away: IndexMap<Arc<str>, Away>,
    tools: HashMap<Box<str>, Arc<ToolRoute>>,
    prompts: HashMap<Box<str>, Arc<PromptRoute>>,
    resources: HashMap<Box<str>, Vec<ResourceRoute>>,
    bare: Option<HashMap<Box<str>, Vec<Arc<ToolRoute>>>>,
}

impl Catalog {
    /// Makes a snapshot of `servers`, in their order.
    pub(crate) fn build(servers: Vec<CatalogServer>, allow_bare_names: bool) -> Self {
        let mut catalog = Self { bare: allow_bare_names.then(HashMap::new), ..Self::default() };
        for server in servers {
            if server.shelf.is_some() && server.state == ServerState::Ready {
                catalog.servers.insert(server.name.clone(), server);
                continue;
            }
            let lost = server.lost.unwrap_or(match server.state {
                ServerState::Starting => Lost::Starting,
                ServerState::Shutdown => Lost::Shutdown,
                ServerState::Ready | ServerState::Unavailable => Lost::ClosedOutput,
            });
            catalog.away.insert(server.name, Away { lost, shelf: server.shelf });
        }
        let ready = catalog.servers.values();
        let shelves: Vec<_> =
            ready.filter_map(|server| Some((server.name.clone(), server.shelf.clone()?))).collect();
        for (server, shelf) in shelves {
            catalog.add(&server, &shelf);
        }
        catalog
    }

    fn is_server(&self, name: &str) -> bool {
        self.servers.contains_key(name) || self.away.contains_key(name)
    }

    /// Whether a public name means this server: with `a` and `a.b`, `a.b.c` is never `a`'s, not
    /// even while `a.b` is away.
    fn means(&self, public: &str, server: &str) -> bool {
        name::split(public, |name| self.is_server(name)).is_some_and(|(meant, _)| meant == server)
    }

    fn add(&mut self, server: &Arc<str>, shelf: &Arc<Shelf>) {
        for tool in &shelf.tools {
            if !self.means(&tool.public, server) {
                continue;
            }
            self.tools.insert(tool.public.clone(), tool.clone());
            if let Some(bare) = &mut self.bare {
                bare.entry(tool.tool.clone()).or_default().push(tool.clone());
            }
        }
        for prompt in &shelf.prompts {
            let public = name::public(server, &prompt.prompt);
            if self.means(&public, server) {
                self.prompts.insert(public, prompt.clone());
            }
        }
        for resource in &shelf.offer.resources {
            let owners = self.resources.entry(resource.view.uri.as_str().into()).or_default();
            owners.push(shelf.resource_route());
        }
    }

    /// The servers that take calls, in the order of the configuration.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &CatalogServer)> {
        self.servers.iter().map(|(name, server)| (&**name, server))
    }

    /// One server, if it takes calls.
    pub fn server(&self, name: &str) -> Option<&CatalogServer> {
        self.servers.get(name)
    }

    /// The public names of all tools that can be called.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        let tools = self.shelves().flat_map(|shelf| &shelf.tools);
        let reached = |tool: &&Arc<ToolRoute>| {
            self.tools.get(&tool.public).is_some_and(|route| Arc::ptr_eq(route, tool))
        };
        tools.filter(reached).map(|tool| &*tool.public)
    }

    /// What a person should look at before a model uses it: text hidden in definitions or
    /// instructions, and tools whose names look like those of a server before theirs. At most 32 of
    /// each kind for a server; read from the snapshot at every call, without traffic.
    pub fn doubts(&self) -> Vec<Doubt> {
        let mut doubts: Vec<Doubt> =
            self.shelves().flat_map(|shelf| shelf.doubts.iter().cloned()).collect();
        doubts.extend(doubt::of_names(self.servers.iter().filter_map(|(name, server)| {
            Some((name, server.offer()?.tools.iter().map(|tool| tool.view.name.as_str())))
        })));
        doubts
    }

    /// What the guard has found in definitions and instructions that are offered all the same
    /// (`guard.definitions` as `flag`); each was told as [`Event::Suspicious`](crate::Event).
    pub fn suspicions(&self) -> Vec<Doubt> {
        let of_shelf = |shelf: &Arc<Shelf>| {
            let server = &shelf.connection.server;
            let offered = shelf.found.iter().filter(|(_, told)| !told.refused);
            let each = offered.flat_map(|(item, told)| {
                let server = server.clone();
                let (tool, item) = Of::split(item.clone());
                let doubt = move |found: &Finding| Doubt {
                    server: server.clone(),
                    tool: tool.clone(),
                    item: item.clone(),
                    reason: found.to_string(),
                };
                told.findings.iter().map(doubt)
            });
            each.collect::<Vec<_>>()
        };
        self.shelves().flat_map(of_shelf).collect()
    }

    fn shelves(&self) -> impl Iterator<Item = &Arc<Shelf>> {
        self.servers.values().filter_map(|server| server.shelf.as_ref())
    }

    /// The route of a tool; misses are explained.
    pub(crate) fn tool(&self, called: &str) -> Result<&Arc<ToolRoute>, CallError> {
        if let Some(route) = self.tools.get(called) {
            return Ok(route);
        }
        if let Some(routes) = self.bare.as_ref().and_then(|bare| bare.get(called)) {
            return match &routes[..] {
                [only] => Ok(only),
                several => Err(CallError::Routing(RoutingError::Ambiguous {
                    name: called.into(),
                    candidates: several.iter().map(|route| route.public.clone()).collect(),
                })),
            };
        }
        Err(self.explain(Of::Tool, called, &self.tool_names().collect::<Vec<_>>()))
    }

    /// The route of a prompt; misses are explained.
    pub(crate) fn prompt(&self, called: &str) -> Result<&Arc<PromptRoute>, CallError> {
        self.prompts.get(called).ok_or_else(|| {
            let mut known: Vec<&str> = self.prompts.keys().map(|name| &**name).collect();
            known.sort_unstable();
            self.explain(Of::Prompt, called, &known)
        })
    }

    /// The server, the name there and the reason, of a tool that exists and is not offered.
    pub(crate) fn kept_out(&self, called: &str) -> Option<(&str, &str, &str)> {
        let (server, item) = name::split(called, |name| self.is_server(name))?;
        let (server, shelf) = self.servers.get_key_value(server)?;
        let mut hidden = shelf.shelf.as_ref()?.hidden.iter();
        let hidden = hidden.find(|hidden| hidden.tool.view.name == item)?;
        Some((server, &hidden.tool.view.name, &hidden.reason))
    }

    fn explain(&self, of: Of, called: &str, known: &[&str]) -> CallError {
        let Some((server, item)) = name::split(called, |name| self.is_server(name)) else {
            let ends = |name: &&str| name.len() > called.len() && ends_with_item(name, called);
            let candidates = known.iter().copied().filter(ends).map(Into::into);
            let candidates: Vec<Box<str>> = candidates.collect();
            return match &candidates[..] {
                [] | [_] => CallError::Routing(RoutingError::UnknownServer {
                    name: called.into(),
                    suggestion: candidates.into_iter().next().or_else(|| closest(called, known)),
                }),
                _ => {
                    CallError::Routing(RoutingError::Ambiguous { name: called.into(), candidates })
                }
            };
        };
        if let Some((server, away)) = self.away.get_key_value(server) {
            return unavailable(server, away);
        }
        let shelf = self.servers.get(server).and_then(|server| server.shelf.as_ref());
        let why = shelf.and_then(|shelf| match of {
            Of::Tool => shelf.refused(item),
            Of::Prompt => shelf.refused_prompt(item),
            Of::Resource | Of::Template => None,
        });
        if let Some(reason) = why {
            return refused(&server.into(), of, item, reason);
        }
        CallError::Routing(RoutingError::UnknownItem {
            server: server.into(),
            what: of.as_str(),
            item: item.into(),
            suggestion: closest(called, known),
        })
    }

    /// The server that a resource is read from: the one named, else the one that lists the URI,
    /// else the one with a template for it.
    pub(crate) fn resource(
        &self,
        uri: &str,
        server: Option<&str>,
    ) -> Result<ResourceRoute, CallError> {
        if let Some(name) = server {
            return self.resource_at(name, uri);
        }
        let listed = self.resources.get(uri).cloned().unwrap_or_default();
        let owners = if listed.is_empty() { self.templates_for(uri) } else { listed };
        match &owners[..] {
            [only] => Ok(only.clone()),
            [] => Err(self.explain_resource(uri)),
            several => Err(CallError::Routing(RoutingError::Ambiguous {
                name: uri.into(),
                candidates: several.iter().map(|route| (*route.connection.server).into()).collect(),
            })),
        }
    }

    fn explain_resource(&self, uri: &str) -> CallError {
        let offered_it = |away: &Away| away.shelf.as_ref().is_some_and(|shelf| shelf.has(uri));
        if let Some((server, away)) = self.away.iter().find(|(_, away)| offered_it(away)) {
            return unavailable(server, away);
        }
        let refuses = |shelf: &Arc<Shelf>| {
            let (of, reason) = shelf.refused_resource(uri)?;
            Some(refused(&shelf.connection.server, of, uri, reason))
        };
        if let Some(refused) = self.shelves().find_map(refuses) {
            return refused;
        }
        let listed = self.shelves().flat_map(|shelf| &shelf.offer.resources);
        let known = listed.map(|resource| resource.view.uri.as_str());
        let suggestion = name::closest(uri, known).map(Into::into);
        CallError::Routing(RoutingError::UnknownResource { uri: uri.into(), suggestion })
    }

    fn resource_at(&self, name: &str, uri: &str) -> Result<ResourceRoute, CallError> {
        if let Some(shelf) = self.servers.get(name).and_then(|server| server.shelf.as_ref()) {
            return match shelf.refused_resource(uri) {
                Some((of, reason)) => Err(refused(&shelf.connection.server, of, uri, reason)),
                None => Ok(shelf.resource_route()),
            };
        }
        match self.away.get_key_value(name) {
            Some((server, away)) => Err(unavailable(server, away)),
            None => Err(CallError::Routing(RoutingError::UnknownServer {
                name: name.into(),
                suggestion: name::closest(name, self.servers.keys().map(|name| &**name))
                    .map(Into::into),
            })),
        }
    }

    /// What the server whose absence is the error offered last, and what it calls this prompt or
    /// resource, unless that was kept out.
    pub(crate) fn last_shelf<'a>(
        &'a self,
        error: &CallError,
        of: Of,
        called: &'a str,
    ) -> Option<(&'a Shelf, &'a str)> {
        let CallError::Unavailable { server, .. } = error else { return None };
        let shelf = self.away.get(server)?.shelf.as_deref()?;
        let (item, refused) = match of {
            Of::Tool => return None,
            Of::Prompt => {
                let (_, prompt) = name::split(called, |name| *name == **server)?;
                (prompt, shelf.refused_prompt(prompt).is_some())
            }
            Of::Resource | Of::Template => (called, shelf.refused_resource(called).is_some()),
        };
        (!refused).then_some((shelf, item))
    }

    /// Resolves when no request waits for an answer; the caller bounds the wait.
    pub(crate) async fn idle(&self) {
        for shelf in self.shelves() {
            shelf.connection.session.idle().await;
        }
    }

    fn templates_for(&self, uri: &str) -> Vec<ResourceRoute> {
        self.shelves()
            .filter(|shelf| shelf.has_template_for(uri) && shelf.refused_resource(uri).is_none())
            .map(|shelf| shelf.resource_route())
            .collect()
    }
}

/// The error of what its pin or the guard keeps out.
fn refused(server: &Arc<str>, of: Of, item: &str, reason: &str) -> CallError {
    let (server, item, reason) = (server.clone(), item.into(), reason.into());
    CallError::Routing(match of {
        Of::Tool => RoutingError::ToolChanged { server, tool: item, reason },
        Of::Prompt | Of::Resource | Of::Template => {
            RoutingError::ItemRefused { server, what: of.as_str(), item, reason }
        }
    })
}

/// The error of a request that a server takes no more: nothing is sent.
fn unavailable(server: &Arc<str>, away: &Away) -> CallError {
    let (server, reason) = (server.clone(), away.lost.clone());
    CallError::Unavailable { server, reason, may_have_run: false, attempts: 0 }
}

fn closest(called: &str, known: &[&str]) -> Option<Box<str>> {
    name::closest(called, known.iter().copied()).map(Into::into)
}

/// Whether the public name is `called` behind some server's name.
fn ends_with_item(public: &str, called: &str) -> bool {
    public.strip_suffix(called).is_some_and(|server| server.ends_with(name::SEPARATOR))
}

impl Serialize for Catalog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("servers", &self.servers)?;
        map.end()
    }
}
