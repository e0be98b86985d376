//! The lists of a server, fetched page by page within limits.

mod raw_list;

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::view::{Prompt, Resource, ResourceTemplate, ServerCapabilities, Tool};
use innkeeper_protocol::{ViewError, method};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::connection::Connection;
use crate::error::{CallError, ProtocolError};
use crate::event::{EventPublisher, HostEvent, REPORTED_TARGET};
use crate::session::ListChanges;
use raw_list::fetch_list;

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
            let name = excluded.name.clone()?;
            let reason = excluded.reason.as_str().into();
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

pub(crate) fn report_missing(events: &EventPublisher, server: &Arc<str>, listing: &ServerListing) {
    for MissingList { list, reason } in &listing.missing {
        tracing::warn!(target: REPORTED_TARGET, server = &**server, list, reason, "list not read");
        let server = server.clone();
        let reason = reason.clone();
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
    let tools = async {
        if capabilities.tools.is_some() && change.tools {
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
    let prompts = capabilities.prompts.is_some() && change.prompts;
    let (tools, prompts, resources, templates) = tokio::try_join!(
        tools,
        optional_list(prompts, method::PROMPTS_LIST, "prompts"),
        optional_list(resources, method::RESOURCES_LIST, "resources"),
        optional_list(resources, method::RESOURCES_TEMPLATES_LIST, "resourceTemplates"),
    )?;
    let mut failures = Vec::new();
    let [prompts, resources, templates] = [prompts, resources, templates].map(|list| {
        list.unwrap_or_else(|failure| {
            failures.push(failure);
            None
        })
    });
    connection.freshness.list_ttls.record_refresh(
        [&tools, &prompts, &resources, &templates]
            .map(|list| list.as_ref().and_then(|list| list.hints)),
    );
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

fn shape_error(connection: &Connection, method: &'static str, error: ViewError) -> CallError {
    CallError::Protocol {
        server: connection.server.clone(),
        item: method.into(),
        source: ProtocolError::InvalidResult(error),
    }
}

#[cfg(test)]
mod tests;
