//! The lists of a server, fetched page by page within limits.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_config::name;
use innkeeper_protocol::view::{
    ListCapability, Page, Prompt, Resource, ResourceTemplate, ServerCapabilities, Tool,
};
use innkeeper_protocol::{ViewError, method, skim};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::list_ttls::ReportedHints;
use super::meta::Meta;
use crate::connection::Connection;
use crate::error::{CallError, ProtocolError};
use crate::event::{EventPublisher, HostEvent, REPORTED_TARGET};
use crate::session::{CoopBudget, ListChanges};

/// Maximum number of pages per list: far above any known server, and the limit for an endless list.
pub(crate) const MAX_PAGES: usize = 64;

/// Maximum number of items per list, so that one server cannot exhaust the catalog.
pub(crate) const MAX_ITEMS: usize = 10_000;

/// Maximum size of one list in bytes.
pub(crate) const MAX_LIST_BYTES: usize = 32 << 20;

/// Share of the time for all lists after which a list of prompts, resources or templates counts as
/// missing: a server without a response to one list keeps its tools.
const OPTIONAL_LIST_TIMEOUT_SHARE: f64 = 0.9;

/// Maximum number of characters shown of a rejected name.
const MAX_SHOWN_CHARS: usize = 64;

/// Maximum size in bytes of a cursor that is sent back.
const MAX_CURSOR_BYTES: usize = 64 << 10;

/// An item as the server sent it, with the host's view of it.
#[derive(Clone, Debug)]
pub struct Definition<V> {
    /// Definition, byte for byte. Lists of tools for models share it.
    pub raw: Arc<RawValue>,
    /// Leniently parsed view of the definition.
    pub view: V,
}

impl<V> Serialize for Definition<V> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

/// A list that the server declares and that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingList {
    /// Method of the list, for example `resources/list`.
    pub list: &'static str,
    /// Reason of the failure. Escape the reason before display: the text can be the server's.
    pub reason: String,
}

/// The tools, prompts, resources and resource templates of one server.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerListing {
    /// Tools in the order of the server.
    pub tools: Vec<Definition<Tool>>,
    /// Prompts in the order of the server.
    pub prompts: Vec<Definition<Prompt>>,
    /// Resources in the order of the server.
    pub resources: Vec<Definition<Resource>>,
    /// Resource templates in the order of the server.
    pub resource_templates: Vec<Definition<ResourceTemplate>>,
    /// Lists that could not be read since the start of the server; these lists are empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingList>,
    /// Items with a name and an unusable definition.
    #[serde(skip)]
    pub(crate) unusable: Vec<UnusableItem>,
}

/// A tool or prompt with an unusable definition, which is not part of the list.
#[derive(Clone, Debug)]
pub(crate) struct UnusableItem {
    /// `tool` or `prompt`.
    pub(crate) kind: &'static str,
    pub(crate) name: Box<str>,
    pub(crate) reason: Box<str>,
}

impl ServerListing {
    /// Replaces the unusable items of one kind by those of a new list.
    fn replace_unusable(&mut self, kind: &'static str, excluded: &[Quarantined]) {
        self.unusable.retain(|item| item.kind != kind);
        self.unusable.extend(excluded.iter().filter_map(|excluded| {
            let (name, reason) = (excluded.name.clone()?, excluded.reason.as_str().into());
            Some(UnusableItem { kind, name, reason })
        }));
    }

    /// Returns whether both listings have the same definitions, byte for byte, in any order: a
    /// rebuilt listing has excluded items at the end.
    pub(crate) fn has_same_items(&self, other: &Self) -> bool {
        fn texts<V>(definitions: &[Definition<V>]) -> Vec<&str> {
            let mut texts: Vec<&str> =
                definitions.iter().map(|definition| definition.raw.get()).collect();
            texts.sort_unstable();
            texts
        }
        fn same<V>(left: &[Definition<V>], other: &[Definition<V>]) -> bool {
            left.len() == other.len() && texts(left) == texts(other)
        }
        same(&self.tools, &other.tools)
            && same(&self.prompts, &other.prompts)
            && same(&self.resources, &other.resources)
            && same(&self.resource_templates, &other.resource_templates)
            && self.missing == other.missing
    }
}

/// An item that was excluded, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quarantined {
    pub(crate) subject: String,
    pub(crate) reason: String,
    /// The name of the item, if the item has one.
    pub(crate) name: Option<Box<str>>,
}

/// Logs the excluded items and publishes an event for each.
pub(crate) fn report_quarantined(
    events: &EventPublisher,
    server: &Arc<str>,
    excluded: &[Quarantined],
) {
    for Quarantined { subject: what, reason, .. } in excluded {
        tracing::warn!(server = &**server, what, reason, "excluded from the catalog");
        events.publish(HostEvent::Quarantined {
            server: server.clone(),
            subject: what.clone(),
            reason: reason.clone(),
        });
    }
}

/// Logs the missing lists and publishes an event for each.
pub(crate) fn report_missing(events: &EventPublisher, server: &Arc<str>, listing: &ServerListing) {
    for MissingList { list, reason } in &listing.missing {
        tracing::warn!(target: REPORTED_TARGET, server = &**server, list, reason, "list not read");
        let (server, reason) = (server.clone(), reason.clone());
        events.publish(HostEvent::ListMissing { server, list, reason });
    }
}

/// Fetches all lists that the server declares, concurrently. A failed list of prompts, resources or
/// templates is missing in the result.
pub(crate) async fn read_all(
    connection: &Connection,
    capabilities: &ServerCapabilities,
    timeout: Duration,
    excluded: &mut Vec<Quarantined>,
) -> Result<ServerListing, CallError> {
    let mut listing = ServerListing::default();
    let change = ListChanges { tools: true, prompts: true, resources: true, notified: true };
    let failures =
        refresh(connection, capabilities, change, timeout, &mut listing, excluded).await?;
    for ListFailure { list, error } in failures {
        listing.missing.push(MissingList { list, reason: error.reason() });
    }
    Ok(listing)
}

/// A list of prompts, resources or templates that could not be read.
#[derive(Debug)]
pub(crate) struct ListFailure {
    /// Method of the list.
    pub(crate) list: &'static str,
    pub(crate) error: CallError,
}

/// Fetches the changed lists; the other lists stay, and so do lists that could not be read. A list
/// that was read is no longer missing.
///
/// # Errors
///
/// Returns the error of the list of tools, and every error of the connection.
pub(crate) async fn refresh(
    connection: &Connection,
    capabilities: &ServerCapabilities,
    change: ListChanges,
    timeout: Duration,
    listing: &mut ServerListing,
    excluded: &mut Vec<Quarantined>,
) -> Result<Vec<ListFailure>, CallError> {
    let needs_fetch =
        |capability: &Option<ListCapability>, changed: bool| capability.is_some() && changed;
    let tools = async {
        if needs_fetch(&capabilities.tools, change.tools) {
            fetch_list(connection, method::TOOLS_LIST, "tools", timeout).await.map(Some)
        } else {
            Ok(None)
        }
    };
    // The list of tools must not wait for the other lists until the whole start times out.
    let optional_timeout = timeout.mul_f64(OPTIONAL_LIST_TIMEOUT_SHARE);
    let optional_list = |fetch: bool, list, member| async move {
        if !fetch {
            return Ok(Ok(None));
        }
        match fetch_list(connection, list, member, optional_timeout).await {
            Ok(read) => Ok(Ok(Some(read))),
            Err(error) if affects_one_list(&error) => Ok(Err(ListFailure { list, error })),
            Err(error) => Err(error),
        }
    };
    let resources = capabilities.resources.is_some() && change.resources;
    let prompts = needs_fetch(&capabilities.prompts, change.prompts);
    let (tools, prompts, resources, templates) = tokio::try_join!(
        tools,
        optional_list(prompts, method::PROMPTS_LIST, "prompts"),
        optional_list(resources, method::RESOURCES_LIST, "resources"),
        optional_list(resources, method::RESOURCES_TEMPLATES_LIST, "resourceTemplates"),
    )?;
    let mut failures = Vec::new();
    let mut succeeded = |list: Result<Option<RawList>, ListFailure>| {
        list.unwrap_or_else(|failure| {
            failures.push(failure);
            None
        })
    };
    let (prompts, resources, templates) =
        (succeeded(prompts), succeeded(resources), succeeded(templates));
    let hints_of = |list: &Option<RawList>| list.as_ref().and_then(|list| list.hints);
    connection.list_ttls.record_refresh([&tools, &prompts, &resources, &templates].map(hints_of));
    let was_read = [
        (method::PROMPTS_LIST, prompts.is_some()),
        (method::RESOURCES_LIST, resources.is_some()),
        (method::RESOURCES_TEMPLATES_LIST, templates.is_some()),
    ];
    listing.missing.retain(|missing| !was_read.contains(&(missing.list, true)));
    if let Some(list) = tools {
        let first = excluded.len();
        listing.tools = list.parse_items("tool", Tool::from_raw, |tool| &tool.name, excluded).await;
        listing.replace_unusable("tool", &excluded[first..]);
    }
    if let Some(list) = prompts {
        let first = excluded.len();
        listing.prompts =
            list.parse_items("prompt", Prompt::from_raw, |prompt| &prompt.name, excluded).await;
        listing.replace_unusable("prompt", &excluded[first..]);
    }
    if let Some(list) = resources {
        listing.resources =
            list.parse_items("resource", Resource::from_raw, |parsed| &parsed.uri, excluded).await;
    }
    if let Some(list) = templates {
        let read = ResourceTemplate::from_raw;
        listing.resource_templates = list
            .parse_items("resource template", read, |parsed| &parsed.uri_template, excluded)
            .await;
    }
    Ok(failures)
}

/// Returns whether the error of a list says nothing about the connection and the other lists.
fn affects_one_list(error: &CallError) -> bool {
    match error {
        CallError::Server { .. } | CallError::Protocol { .. } | CallError::Timeout { .. } => true,
        CallError::Unavailable { .. }
        | CallError::Routing(_)
        | CallError::Validation { .. }
        | CallError::Withheld { .. } => false,
    }
}

/// The raw items of one list with its problems.
#[derive(Debug, Default)]
struct RawList {
    items: Vec<Box<RawValue>>,
    issues: Vec<String>,
    /// Cache hints of its pages; `None` before the first page.
    hints: Option<ReportedHints>,
}

async fn fetch_list(
    connection: &Connection,
    method: &'static str,
    member: &'static str,
    timeout: Duration,
) -> Result<RawList, CallError> {
    let deadline = Instant::now() + timeout;
    let mut list = RawList::default();
    let mut cursors = HashSet::new();
    let mut bytes = 0;
    let mut cursor = None::<Box<RawValue>>;
    for _ in 0..MAX_PAGES {
        let params = ListParams {
            cursor: cursor.as_deref(),
            meta: connection.negotiated.client_meta.meta(None),
        };
        let remaining = deadline.saturating_duration_since(Instant::now());
        let page = match connection.request_internal(method, &params, remaining).await {
            // If the server declares tools but does not implement the method, the list is empty.
            Err(CallError::Server { error, .. })
                if error.code == METHOD_NOT_FOUND && method == method::TOOLS_LIST =>
            {
                list.issues
                    .push("declared, but the server does not implement the method".to_owned());
                return Ok(list);
            }
            // No capability declares templates: a server with resources may have none.
            Err(CallError::Server { error, .. })
                if error.code == METHOD_NOT_FOUND && method == method::RESOURCES_TEMPLATES_LIST =>
            {
                return Ok(list);
            }
            other => other?,
        };
        bytes += page.get().len();
        let hints = ReportedHints::from_page(&page);
        list.hints = Some(list.hints.map_or(hints, |earlier| earlier.merge(hints)));
        let page = Page::from_raw(&page, member)
            .map_err(|error| shape_error(connection, method, error))?;
        list.items.extend(page.items);
        if page.left_out > 0 {
            list.issues
                .push(format!("{} entries are not objects or exceed the limit", page.left_out));
        }
        if list.items.len() > MAX_ITEMS || bytes > MAX_LIST_BYTES {
            list.items.truncate(MAX_ITEMS);
            list.issues.push(format!("exceeds {MAX_ITEMS} items or {MAX_LIST_BYTES} bytes"));
            return Ok(list);
        }
        match page.next_cursor {
            None => return Ok(list),
            Some(next) if next.get().len() > MAX_CURSOR_BYTES => {
                list.issues.push(format!("cursor exceeds {MAX_CURSOR_BYTES} bytes"));
                return Ok(list);
            }
            Some(next) if !cursors.insert(next.get().to_owned()) => {
                list.issues.push("repeated cursor; further pages ignored".to_owned());
                return Ok(list);
            }
            Some(next) => cursor = Some(next),
        }
    }
    list.issues.push(format!("exceeds {MAX_PAGES} pages; further pages ignored"));
    Ok(list)
}

const METHOD_NOT_FOUND: i64 = innkeeper_protocol::envelope::code::METHOD_NOT_FOUND;

fn shape_error(connection: &Connection, method: &'static str, error: ViewError) -> CallError {
    CallError::Protocol {
        server: connection.server.clone(),
        item: method.into(),
        source: ProtocolError::InvalidResult(error),
    }
}

#[derive(Serialize)]
struct ListParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a RawValue>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
}

impl RawList {
    /// Parses the items; excludes only malformed, badly named and duplicate items.
    async fn parse_items<V>(
        self,
        item_kind: &str,
        read: impl Fn(&RawValue) -> Result<V, ViewError>,
        key: impl Fn(&V) -> &str,
        excluded: &mut Vec<Quarantined>,
    ) -> Vec<Definition<V>> {
        let mut names = HashSet::new();
        let mut definitions = Vec::with_capacity(self.items.len());
        let mut budget = CoopBudget::default();
        for odd in self.issues {
            let subject = format!("{item_kind} list");
            excluded.push(Quarantined { subject, reason: odd, name: None });
        }
        for (index, raw) in self.items.into_iter().enumerate() {
            budget.consume(raw.get().len()).await;
            let view = match read(&raw) {
                Ok(view) => view,
                Err(error) => {
                    let name = skim::member(raw.get(), "name").and_then(skim::decode_string);
                    let subject = match &name {
                        Some(name) => quote_item(item_kind, name),
                        None => format!("{item_kind} number {index}"),
                    };
                    let name = name.map(|name| name.into_owned().into());
                    excluded.push(Quarantined { subject, reason: error.to_string(), name });
                    continue;
                }
            };
            let rejection = match item_kind {
                "tool" | "prompt" => name::name_problem(key(&view)),
                _ => None,
            };
            let rejection = rejection.map(|problem| format!("the name {problem}"));
            let doubled = || names.contains(key(&view)).then(|| "duplicate name".to_owned());
            if let Some(reason) = rejection.or_else(doubled) {
                let subject = quote_item(item_kind, key(&view));
                excluded.push(Quarantined { subject, reason, name: None });
                continue;
            }
            names.insert(key(&view).to_owned());
            definitions.push(Definition { raw: raw.into(), view });
        }
        definitions
    }
}

/// Returns the kind and the name of an item for a message on one line.
fn quote_item(kind: &str, name: &str) -> String {
    let name: String = name.chars().take(MAX_SHOWN_CHARS).collect();
    let name = crate::text::display_safe(&name).replace('\n', "\\n");
    format!("{kind} `{}`", name.replace('\t', "\\t"))
}

#[cfg(test)]
mod tests;
