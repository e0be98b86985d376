//! What an endpoint offers: the items of all its servers under the names that clients use.
//!
//! An offering is an immutable snapshot. A lookup needs no lock, no await and no message.

mod capabilities;
mod pages;
mod search;
mod unusual_names;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use innkeeper_host::{Catalog, CatalogServer, ListCacheHint};
use innkeeper_protocol::http::ParamHeaders;
use innkeeper_protocol::request_meta::EXTENSION_TASKS;
use innkeeper_protocol::view::{TasksCapability, uri_matches};
use innkeeper_protocol::{Era, Revision, skim};
use serde_json::value::RawValue;

use crate::item_names::ItemNames;
use crate::json_text;
use crate::options::EndpointOptions;
use crate::server_use::{InUse, ServerUse};
use crate::upstream::Upstream;

pub(crate) use capabilities::{aggregate_capabilities, declare_all};
pub(crate) use pages::{ItemList, ListItem};
pub(crate) use search::ToolSearch;

/// A server of an offering.
#[derive(Clone, Debug)]
pub(crate) struct OfferedServer {
    pub(crate) name: Arc<str>,
    pub(crate) era: Era,
    /// Whether the protocol ties each message of the server to a call: on the response streams of
    /// HTTP. Over a pipe, the modern era ties requests and no log messages.
    pub(crate) ties_messages: bool,
    pub(crate) capabilities: Box<RawValue>,
    /// Whether the server sends log messages.
    pub(crate) has_logging: bool,
    /// The tasks that the server can create for a call of a tool, in its own era.
    pub(crate) tasks: TasksCapability,
    pub(crate) instructions: Option<Arc<str>>,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) server_use: Arc<ServerUse>,
    /// The use that a call already has. A second one could wait for a stop that waits for the first.
    pub(crate) in_use: Option<InUse>,
    /// The place in the configuration, among the servers of the same sharing policy.
    position: (usize, usize),
}

/// A tool or a prompt.
#[derive(Clone, Debug)]
pub(crate) struct NamedItem {
    pub(crate) names: ItemNames,
    pub(crate) server: Arc<OfferedServer>,
    /// The arguments that requests of the modern era repeat in headers; none for prompts.
    pub(crate) param_headers: ParamHeaders,
    /// Whether a call may run twice: its tool is read-only or idempotent, or the item is a prompt.
    pub(crate) may_repeat: bool,
}

impl NamedItem {
    /// Returns the item for a call that uses its server already.
    pub(crate) fn with_use(&self, in_use: &InUse) -> Self {
        let Self { server, .. } = self;
        let in_use = Some(in_use.clone()).filter(|in_use| in_use.is_of(&server.server_use));
        Self { server: Arc::new(OfferedServer { in_use, ..(**server).clone() }), ..self.clone() }
    }
}

impl AsRef<ItemNames> for NamedItem {
    fn as_ref(&self) -> &ItemNames {
        &self.names
    }
}

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

/// Definitions of servers of one host: of all that run, or of one that the gateway stopped.
#[derive(Debug)]
pub(crate) struct CatalogSource {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) upstream: Arc<Upstream>,
}

/// An item before the check for unique names.
struct Candidate<'a> {
    names: ItemNames,
    may_repeat: bool,
    raw: &'a RawValue,
    server: Arc<OfferedServer>,
}

/// The servers and items of an endpoint before the check for unique names.
#[derive(Default)]
struct Candidates<'a> {
    servers: Vec<Arc<OfferedServer>>,
    tools: Vec<Candidate<'a>>,
    prompts: Vec<Candidate<'a>>,
    resources: Vec<Candidate<'a>>,
    templates: Vec<Candidate<'a>>,
}

impl<'a> Candidates<'a> {
    /// Adds what an endpoint offers of a host. `is_server` knows the servers of all hosts.
    fn add(
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
    fn sort(&mut self) {
        self.servers.sort_by_key(|server| server.position);
        let Self { tools, prompts, resources, templates, .. } = self;
        for candidates in [tools, prompts, resources, templates] {
            candidates.sort_by_key(|candidate| candidate.server.position);
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
        let is_pinned = |tool: &ListItem| {
            tools.get(&tool.name).is_some_and(|item: &NamedItem| endpoint.is_pinned(&item.names))
        };
        let (tool_list, search) =
            search::listed_tools(tool_list, endpoint, is_pinned, &mut omitted);
        let (prompt_list, prompts) = unique(prompts, "prompt", &mut omitted, with_name);
        let as_is = |raw: &RawValue, _: &str| raw.get().to_owned();
        let (resource_list, resources) = unique(resources, "resource", &mut omitted, as_is);
        let (template_list, templates) =
            unique(templates, "resource template", &mut omitted, as_is);
        let owners = |items: Vec<(Box<str>, NamedItem)>| {
            items.into_iter().map(|(uri, item)| (uri, item.server))
        };
        Self {
            servers,
            tools,
            prompts: prompts.into_iter().collect(),
            resources: owners(resources).collect(),
            templates: owners(templates).collect(),
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

    /// Returns the tool of a name.
    pub(crate) fn tool(&self, name: &str) -> Option<&NamedItem> {
        self.tools.get(name)
    }

    /// Returns the prompt of a name.
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
        let fixed_len = |template: &str| template.find('{').unwrap_or(template.len());
        let matching = self.templates.iter().filter(|(template, _)| uri_matches(template, uri));
        let best = matching.min_by_key(|(template, _)| Reverse(fixed_len(template)));
        if let Some((_, server)) = best {
            return Some(server);
        }
        let mut with_resources = self.servers.iter().filter(|server| server.declares("resources"));
        let server = with_resources.next()?;
        with_resources.next().is_none().then_some(server)
    }

    /// Returns whether a server lists the URI.
    pub(crate) fn lists_resource(&self, uri: &str) -> bool {
        self.resources.contains_key(uri)
    }

    /// Returns the server of a resource template.
    pub(crate) fn template_server(&self, template: &str) -> Option<&Arc<OfferedServer>> {
        self.templates.iter().find(|(known, _)| **known == *template).map(|(_, server)| server)
    }

    /// Returns a server by name.
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
        let (now, earlier) = (self.list(kind), earlier.list(kind));
        let is_known =
            |item: &&ListItem| !self.owner(kind, &item.name).is_some_and(|one| is_new(one));
        now.has_same_items(earlier) || now.items().iter().filter(is_known).eq(earlier.items())
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
            return only.instructions.as_deref().map(ToOwned::to_owned);
        }
        let sections = self.servers.iter().filter_map(|server| {
            Some(format!("# {}\n\n{}", server.name, server.instructions.as_deref()?.trim()))
        });
        let sections: Vec<_> = sections.collect();
        (!sections.is_empty()).then(|| sections.join("\n\n"))
    }
}

impl OfferedServer {
    /// Returns the cache hint of a list as of now. `None` without a hint: for a server of the legacy
    /// era, and for a server that is not ready.
    pub(crate) fn list_cache_hint(&self, kind: ListKind) -> Option<ListCacheHint> {
        let hints = self.upstream.host.catalog().server(&self.name)?.list_cache_hints()?;
        match kind {
            ListKind::Tools => hints.tools,
            ListKind::Prompts => hints.prompts,
            ListKind::Resources => hints.resources,
            ListKind::ResourceTemplates => hints.resource_templates,
        }
    }

    /// Returns the number of the connection to the server, if the server is ready.
    pub(crate) fn connection_number(&self) -> Option<u64> {
        self.upstream.connection_number(&self.name)
    }

    /// Returns whether the server declares a capability.
    pub(crate) fn declares(&self, capability: &str) -> bool {
        declares(&self.capabilities, capability)
    }
}

fn declares(capabilities: &RawValue, capability: &str) -> bool {
    skim::member(capabilities.get(), capability)
        .is_some_and(|value| !matches!(value, "false" | "null"))
}

/// Returns what a server declares about tasks in this revision.
fn task_capability(revision: Revision, capabilities: &RawValue) -> TasksCapability {
    let declared = |keys: &[&str]| {
        let value =
            keys.iter().try_fold(capabilities.get(), |object, key| skim::member(object, key));
        value.is_some_and(|value| value.starts_with('{'))
    };
    match revision.era() {
        Era::Modern => {
            let call = declared(&["extensions", EXTENSION_TASKS]);
            TasksCapability { call, cancel: call }
        }
        Era::Legacy if revision.has_core_tasks() => TasksCapability {
            call: declared(&["tasks", "requests", "tools", "call"]),
            cancel: declared(&["tasks", "cancel"]),
        },
        Era::Legacy => TasksCapability::default(),
    }
}

fn offered_server(
    name: &str,
    server: &CatalogServer,
    upstream: &Arc<Upstream>,
) -> Option<OfferedServer> {
    let revision: Revision = server.protocol_version()?.parse().ok()?;
    let (era, capabilities) = (revision.era(), server.capabilities()?);
    Some(OfferedServer {
        name: name.into(),
        era,
        ties_messages: server.transport() == "http",
        capabilities: capabilities.to_owned(),
        has_logging: declares(capabilities, "logging"),
        tasks: task_capability(revision, capabilities),
        instructions: server.instructions().map(Into::into),
        upstream: upstream.clone(),
        server_use: upstream.server_use(name),
        in_use: None,
        position: upstream.position(name),
    })
}

fn with_name(raw: &RawValue, name: &str) -> String {
    json_text::replace_name(raw.get(), name)
}

/// Keeps the first item of each URI, in the order of the configuration: a server that lists the URI of
/// another one must not hide it.
fn keep_first(candidates: &mut Vec<Candidate<'_>>, kind: &str, omitted: &mut Vec<String>) {
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
fn unique(
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
