//! The items of all servers, before names that occur twice are decided.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use innkeeper_host::Catalog;
use innkeeper_protocol::http::ParamHeaders;
use innkeeper_protocol::skim;
use serde_json::value::RawValue;

use super::offered::offered_server;
use super::pages::ListItem;
use super::{NamedItem, OfferedServer};
use crate::item_names::ItemNames;
use crate::options::EndpointOptions;
use crate::upstream::Upstream;

/// Definitions of servers of one host: of all that run, or of one that the gateway stopped.
#[derive(Debug)]
pub(crate) struct CatalogSource {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) upstream: Arc<Upstream>,
}

/// An item before the check for unique names.
pub(super) struct Candidate<'a> {
    names: ItemNames,
    may_repeat: bool,
    raw: &'a RawValue,
    server: Arc<OfferedServer>,
}

/// The servers and items of an endpoint before the check for unique names.
#[derive(Default)]
pub(super) struct Candidates<'a> {
    pub(super) servers: Vec<Arc<OfferedServer>>,
    pub(super) tools: Vec<Candidate<'a>>,
    pub(super) prompts: Vec<Candidate<'a>>,
    pub(super) resources: Vec<Candidate<'a>>,
    pub(super) templates: Vec<Candidate<'a>>,
}

impl<'a> Candidates<'a> {
    /// Adds what an endpoint offers of a host. `is_server` knows the servers of all hosts.
    pub(super) fn add(
        &mut self,
        source: &'a CatalogSource,
        endpoint: &EndpointOptions,
        is_server: &dyn Fn(&str) -> bool,
    ) {
        let CatalogSource { catalog, upstream } = source;
        let mut by_name = HashMap::new();
        for (name, server) in catalog.servers().filter(|(name, _)| endpoint.has_server(name)) {
            let Some(offered) = offered_server(name, server, upstream) else { continue };
            let offered = Arc::new(offered);
            self.servers.push(offered.clone());
            by_name.insert(name, offered.clone());
        }
        let names = |server: &str, item: &str| {
            ItemNames::new(endpoint.names, server, item).with_servers(is_server)
        };
        for prompt in catalog.prompts() {
            let Some(offered) = by_name.get(prompt.server) else { continue };
            self.prompts.push(Candidate {
                names: names(prompt.server, &prompt.definition.view.name),
                may_repeat: true,
                raw: &prompt.definition.raw,
                server: offered.clone(),
            });
        }
        for resource in catalog.resources() {
            let Some(offered) = by_name.get(resource.server) else { continue };
            self.resources.push(Candidate {
                names: ItemNames::single(resource.uri),
                may_repeat: true,
                raw: &resource.definition.raw,
                server: offered.clone(),
            });
        }
        for template in catalog.resource_templates() {
            let Some(offered) = by_name.get(template.server) else { continue };
            self.templates.push(Candidate {
                names: ItemNames::single(template.uri_template),
                may_repeat: true,
                raw: &template.definition.raw,
                server: offered.clone(),
            });
        }
        for tool in catalog.tools() {
            let Some(offered) = by_name.get(tool.server) else { continue };
            let names = names(tool.server, &tool.definition.view.name);
            if !endpoint.has_tool(&names) {
                continue;
            }
            let annotations = &tool.definition.view.annotations;
            let hints = [annotations.read_only_hint, annotations.idempotent_hint];
            self.tools.push(Candidate {
                names,
                may_repeat: hints.contains(&Some(true)),
                raw: &tool.definition.raw,
                server: offered.clone(),
            });
        }
    }

    /// Sorts everything in the order of the configuration.
    pub(super) fn sort(&mut self) {
        self.servers.sort_by_key(|server| server.position);
        let Self { tools, prompts, resources, templates, .. } = self;
        for candidates in [tools, prompts, resources, templates] {
            candidates.sort_by_key(|candidate| candidate.server.position);
        }
    }
}

/// Keeps the first item of each URI, in the order of the configuration: a server that lists the URI of
/// another one must not hide it.
pub(super) fn keep_first(
    candidates: &mut Vec<Candidate<'_>>,
    kind: &str,
    omitted: &mut Vec<String>,
) {
    let mut owners: HashMap<Box<str>, Arc<OfferedServer>> = HashMap::new();
    candidates.retain(|candidate| match owners.entry(candidate.names.offered().into()) {
        Entry::Vacant(free) => {
            free.insert(candidate.server.clone());
            true
        }
        Entry::Occupied(owner) => {
            omitted.push(format!(
                "{kind} `{}` of server `{}` is left out: server `{}` comes first",
                candidate.names.offered(),
                candidate.server.name,
                owner.get().name
            ));
            false
        }
    });
}

/// Leaves out every item whose name several items have. Returns the definitions for the list and
/// the items by name.
pub(super) fn unique(
    candidates: Vec<Candidate<'_>>,
    kind: &str,
    omitted: &mut Vec<String>,
    render: impl Fn(&RawValue, &str) -> String,
) -> (Vec<ListItem>, Vec<(Box<str>, NamedItem)>) {
    let mut counts: HashMap<&str, Vec<&str>> = HashMap::new();
    for candidate in &candidates {
        counts.entry(candidate.names.offered()).or_default().push(&candidate.server.name);
    }
    let mut ambiguous: Vec<_> = counts.iter().filter(|(_, owners)| owners.len() > 1).collect();
    ambiguous.sort();
    omitted.extend(ambiguous.iter().map(|(key, owners)| {
        format!("{kind} `{key}` is left out: servers {} have it", owners.join(", "))
    }));
    let ambiguous: std::collections::HashSet<Box<str>> =
        ambiguous.into_iter().map(|(key, _)| (*key).into()).collect();
    let unique =
        candidates.into_iter().filter(|candidate| !ambiguous.contains(candidate.names.offered()));
    unique
        .map(|Candidate { names, may_repeat, raw, server }| {
            // The host excludes tools with invalid annotations.
            let param_headers = skim::member(raw.get(), "inputSchema")
                .and_then(|schema| serde_json::from_str::<&RawValue>(schema).ok())
                .and_then(|schema| ParamHeaders::from_schema(schema).ok())
                .unwrap_or_default();
            let key: Box<str> = names.offered().into();
            let text = render(raw, &key);
            (
                ListItem { name: key.clone(), text },
                (key, NamedItem { names, server, param_headers, may_repeat }),
            )
        })
        .unzip()
}
