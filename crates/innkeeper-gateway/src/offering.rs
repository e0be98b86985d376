//! What an endpoint offers: the items of all its servers under the names that clients use.
//!
//! An offering is an immutable snapshot. A lookup needs no lock, no await and no message.

mod candidates;
mod capabilities;
mod offered;
mod pages;
mod search;
mod unusual_names;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use innkeeper_protocol::view::uri_matches;
use serde_json::value::RawValue;

use crate::json_text;
use crate::options::EndpointOptions;

pub(crate) use candidates::CatalogSource;
use candidates::{Candidates, keep_first, unique};
pub(crate) use capabilities::{aggregate_capabilities, declare_all};
pub(crate) use offered::{NamedItem, OfferedServer};
pub(crate) use pages::{ItemList, ListItem};
pub(crate) use search::ToolSearch;

/// The items of one endpoint.
#[derive(Debug)]
pub(crate) struct Offering {
    pub(crate) servers: Vec<Arc<OfferedServer>>,
    tools: HashMap<Box<str>, NamedItem>,
    prompts: HashMap<Box<str>, NamedItem>,
    resources: HashMap<Box<str>, Arc<OfferedServer>>,
    templates: Vec<(Box<str>, Arc<OfferedServer>)>,
    pub(crate) lists: [ItemList; 4],
    /// The search of an endpoint that lists only some of its tools.
    pub(crate) search: Option<ToolSearch>,
    /// The items that are left out because their name or URI is not unique, with the reason.
    pub(crate) omitted: Vec<String>,
}

/// A list that clients request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    Resources,
    ResourceTemplates,
}

impl ListKind {
    pub(crate) const ALL: [Self; 4] =
        [Self::Tools, Self::Prompts, Self::Resources, Self::ResourceTemplates];

    /// Returns the member of the result that contains the items.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
        }
    }
}

impl Offering {
    /// Builds the offering of an endpoint from the definitions of its servers. The items are in the
    /// order of the configuration. `is_server` knows the servers of all hosts, also of those that do not
    /// run yet.
    pub(crate) fn build(
        sources: &[CatalogSource],
        endpoint: &EndpointOptions,
        is_server: &dyn Fn(&str) -> bool,
    ) -> Self {
        let mut omitted = Vec::new();
        let mut candidates = Candidates::default();
        for source in sources {
            candidates.add(source, endpoint, is_server);
        }
        candidates.sort();
        let Candidates { servers, tools, prompts, mut resources, mut templates } = candidates;
        keep_first(&mut resources, "resource", &mut omitted);
        keep_first(&mut templates, "resource template", &mut omitted);
        let (tool_list, tools) = unique(tools, "tool", &mut omitted, with_name);
        let tools: HashMap<_, _> = tools.into_iter().collect();
        let (tool_list, search) = search::listed_tools(
            tool_list,
            endpoint,
            |tool| {
                tools
                    .get(&tool.name)
                    .is_some_and(|item: &NamedItem| endpoint.is_pinned(&item.names))
            },
            &mut omitted,
        );
        let (prompt_list, prompts) = unique(prompts, "prompt", &mut omitted, with_name);
        let as_is = |raw: &RawValue, _: &str| raw.get().to_owned();
        let (resource_list, resources) = unique(resources, "resource", &mut omitted, as_is);
        let (template_list, templates) =
            unique(templates, "resource template", &mut omitted, as_is);
        Self {
            servers,
            tools,
            prompts: prompts.into_iter().collect(),
            resources: resources.into_iter().map(|(uri, item)| (uri, item.server)).collect(),
            templates: templates.into_iter().map(|(uri, item)| (uri, item.server)).collect(),
            lists: [
                ItemList::new(tool_list),
                ItemList::new(prompt_list),
                ItemList::new(resource_list),
                ItemList::new(template_list),
            ],
            search,
            omitted,
        }
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&NamedItem> {
        self.tools.get(name)
    }

    pub(crate) fn prompt(&self, name: &str) -> Option<&NamedItem> {
        self.prompts.get(name)
    }

    /// Returns the server of a resource: the server that lists the URI, else the server with the
    /// matching template that says most, else the only server with resources, because servers may
    /// have resources that they do not list.
    pub(crate) fn resource_server(&self, uri: &str) -> Option<&Arc<OfferedServer>> {
        if let Some(server) = self.resources.get(uri) {
            return Some(server);
        }
        // The template with the longest fixed start: one that matches every URI takes none from others.
        let matching = self.templates.iter().filter(|(template, _)| uri_matches(template, uri));
        let best = matching
            .min_by_key(|(template, _)| Reverse(template.find('{').unwrap_or(template.len())));
        if let Some((_, server)) = best {
            return Some(server);
        }
        let mut with_resources = self.servers.iter().filter(|server| server.declares("resources"));
        let server = with_resources.next()?;
        with_resources.next().is_none().then_some(server)
    }

    pub(crate) fn lists_resource(&self, uri: &str) -> bool {
        self.resources.contains_key(uri)
    }

    pub(crate) fn template_server(&self, template: &str) -> Option<&Arc<OfferedServer>> {
        self.templates.iter().find(|(known, _)| **known == *template).map(|(_, server)| server)
    }

    pub(crate) fn server(&self, name: &str) -> Option<&Arc<OfferedServer>> {
        self.servers.iter().find(|server| *server.name == *name)
    }

    pub(crate) fn list(&self, kind: ListKind) -> &ItemList {
        &self.lists[kind as usize]
    }

    /// Returns whether a list has the same items as that of an earlier offering, apart from the items of new
    /// servers.
    pub(crate) fn has_same_list(
        &self,
        earlier: &Self,
        kind: ListKind,
        is_new: impl Fn(&OfferedServer) -> bool,
    ) -> bool {
        let now = self.list(kind);
        let earlier = earlier.list(kind);
        now.has_same_items(earlier)
            || now
                .items()
                .iter()
                .filter(|item| !self.owner(kind, &item.name).is_some_and(|one| is_new(one)))
                .eq(earlier.items())
    }

    /// Returns the server of a listed item; `None` for a tool of the gateway.
    fn owner(&self, kind: ListKind, name: &str) -> Option<&Arc<OfferedServer>> {
        match kind {
            ListKind::Tools => self.tools.get(name).map(|tool| &tool.server),
            ListKind::Prompts => self.prompts.get(name).map(|prompt| &prompt.server),
            ListKind::Resources => self.resources.get(name),
            ListKind::ResourceTemplates => self.template_server(name),
        }
    }

    /// Returns the instructions of all servers: those of a single server as they are, those of
    /// several servers under the names of the servers.
    pub(crate) fn instructions(&self) -> Option<String> {
        if let [only] = &self.servers[..] {
            return only.declared.instructions.as_deref().map(ToOwned::to_owned);
        }
        let sections = self.servers.iter().filter_map(|server| {
            Some(format!(
                "# {}\n\n{}",
                server.name,
                server.declared.instructions.as_deref()?.trim()
            ))
        });
        let sections: Vec<_> = sections.collect();
        (!sections.is_empty()).then(|| sections.join("\n\n"))
    }
}

fn with_name(raw: &RawValue, name: &str) -> String {
    json_text::replace_name(raw.get(), name)
}
