//! Finds the route of a name or a URI, or the error that explains why there is none.

use std::sync::Arc;

use innkeeper_config::name;

use super::route::{PromptRoute, ResourceRoute, ToolRoute};
use super::{Catalog, unavailable_error};
use crate::error::{CallError, RoutingError};
use crate::guard::ItemKind;

impl Catalog {
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
        let mut excluded = entry.entry.as_ref()?.excluded.tools.iter();
        let excluded = excluded.find(|excluded| excluded.tool.view.name == item)?;
        Some((server, &excluded.tool.view.name, &excluded.reason))
    }

    fn lookup_error(&self, kind: ItemKind, requested: &str, known_names: &[&str]) -> CallError {
        let Some((server, item)) = name::split_name(requested, |name| self.is_server(name)) else {
            let candidates = known_names
                .iter()
                .copied()
                .filter(|name| name.len() > requested.len() && ends_with_item(name, requested))
                .map(Into::into);
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
            ItemKind::Tool => entry.excluded.withheld_tool_reason(item),
            ItemKind::Prompt => entry.excluded.prompt_reason(item),
            ItemKind::Resource | ItemKind::Template => None,
        });
        if let Some(reason) = withheld_reason {
            return exclusion_error(&server.into(), kind, item, reason);
        }
        if let Some(reason) = entry.and_then(|entry| entry.excluded.unusable_reason(kind, item)) {
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
        for (server, unavailable) in &self.unavailable {
            if unavailable.entry.as_ref().is_some_and(|entry| entry.has_resource(uri)) {
                return unavailable_error(server, unavailable);
            }
        }
        for entry in self.entries() {
            if let Some((kind, reason)) = entry.resource_withheld_reason(uri) {
                return exclusion_error(&entry.connection.server, kind, uri, reason);
            }
        }
        let resources = self.entries().flat_map(|entry| &entry.listing.resources);
        let known_uris = resources.map(|resource| resource.view.uri.as_str());
        let suggestion = name::closest(uri, known_uris).map(Into::into);
        CallError::Routing(RoutingError::UnknownResource { uri: uri.into(), suggestion })
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
    let server = server.clone();
    let item = item.into();
    let reason = reason.into();
    CallError::Routing(match kind {
        ItemKind::Tool => RoutingError::ToolWithheld { server, tool: item, reason },
        ItemKind::Prompt | ItemKind::Resource | ItemKind::Template => {
            RoutingError::ItemWithheld { server, item_kind: kind.as_str(), item, reason }
        }
    })
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
