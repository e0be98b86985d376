//! What a server offers: its lists, read page by page within limits, each item kept as it was sent.

use std::collections::HashSet;
use std::time::Duration;

use innkeeper_protocol::view::{
    ListChanged, Page, Prompt, Resource, ResourceTemplate, ServerCapabilities, Tool,
};
use innkeeper_protocol::{ViewError, method};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::age;
use super::connection::Connection;
use super::meta::Meta;
use super::session::{Change, Turns};
use crate::error::{CallError, ProtocolFault};
use crate::name;

/// Pages of one list; far above any server seen, and a server that never stops is stopped here.
pub(crate) const PAGE_LIMIT: usize = 64;

/// Items of one list; what a catalog can hold without hurting its neighbours.
pub(crate) const ITEM_LIMIT: usize = 10_000;

/// Bytes of one list.
pub(crate) const LIST_BYTES: usize = 32 << 20;

/// How much of a refused name is shown.
const SHOWN: usize = 64;

/// The longest cursor that is sent back.
const CURSOR_LIMIT: usize = 64 << 10;

/// An item as the server sent it, beside what the host reads from it.
#[derive(Clone, Debug)]
pub struct Offered<V> {
    /// The definition, byte for byte.
    pub raw: Box<RawValue>,
    /// The lenient view of it.
    pub view: V,
}

impl<V> Serialize for Offered<V> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

/// Everything one server offers.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// Tools in the order of the server.
    pub tools: Vec<Offered<Tool>>,
    /// Prompts in the order of the server.
    pub prompts: Vec<Offered<Prompt>>,
    /// Resources in the order of the server.
    pub resources: Vec<Offered<Resource>>,
    /// Resource templates in the order of the server.
    pub resource_templates: Vec<Offered<ResourceTemplate>>,
}

impl Offer {
    /// Whether the other one says the same, byte for byte, in whatever order: what is kept out stands
    /// last in one that was put together again.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        fn texts<V>(of: &[Offered<V>]) -> Vec<&str> {
            let mut texts: Vec<&str> = of.iter().map(|one| one.raw.get()).collect();
            texts.sort_unstable();
            texts
        }
        fn same<V>(one: &[Offered<V>], other: &[Offered<V>]) -> bool {
            one.len() == other.len() && texts(one) == texts(other)
        }
        same(&self.tools, &other.tools)
            && same(&self.prompts, &other.prompts)
            && same(&self.resources, &other.resources)
            && same(&self.resource_templates, &other.resource_templates)
    }
}

/// Something that was left out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quarantined {
    pub(crate) what: String,
    pub(crate) reason: String,
}

/// Reads all lists the server declares, side by side.
pub(crate) async fn read_all(
    connection: &Connection,
    declared: &ServerCapabilities,
    timeout: Duration,
    left_out: &mut Vec<Quarantined>,
) -> Result<Offer, CallError> {
    let mut offer = Offer::default();
    let change = Change { tools: true, prompts: true, resources: true, told: true };
    refresh(connection, declared, change, timeout, &mut offer, left_out).await?;
    Ok(offer)
}

/// Reads those lists again that changed; the others of `offer` stay.
pub(crate) async fn refresh(
    connection: &Connection,
    declared: &ServerCapabilities,
    change: Change,
    timeout: Duration,
    offer: &mut Offer,
    left_out: &mut Vec<Quarantined>,
) -> Result<(), CallError> {
    let asks = |declared: &Option<ListChanged>, changed: bool| declared.is_some() && changed;
    let list = |wanted: bool, method, member| async move {
        if wanted { list(connection, method, member, timeout).await.map(Some) } else { Ok(None) }
    };
    let resources = declared.resources.is_some() && change.resources;
    let (tools, prompts, resources, templates) = tokio::try_join!(
        list(asks(&declared.tools, change.tools), method::TOOLS_LIST, "tools"),
        list(asks(&declared.prompts, change.prompts), method::PROMPTS_LIST, "prompts"),
        list(resources, method::RESOURCES_LIST, "resources"),
        list(resources, method::RESOURCES_TEMPLATES_LIST, "resourceTemplates"),
    )?;
    let good_for = |list: &Option<List>| list.as_ref().and_then(|list| list.good_for);
    let found = age::shorter(good_for(&resources), good_for(&templates));
    connection.ages.read(change, [good_for(&tools), good_for(&prompts), found]);
    if let Some(list) = tools {
        offer.tools = list.read("tool", Tool::read, |tool| &tool.name, left_out).await;
    }
    if let Some(list) = prompts {
        offer.prompts = list.read("prompt", Prompt::read, |prompt| &prompt.name, left_out).await;
    }
    if let Some(list) = resources {
        offer.resources = list.read("resource", Resource::read, |found| &found.uri, left_out).await;
    }
    if let Some(list) = templates {
        let read = ResourceTemplate::read;
        offer.resource_templates =
            list.read("resource template", read, |found| &found.uri_template, left_out).await;
    }
    Ok(())
}

/// The raw items of one list and what was odd about it.
#[derive(Debug, Default)]
struct List {
    items: Vec<Box<RawValue>>,
    odd: Vec<String>,
    /// The least that one of its pages is good for.
    good_for: Option<Duration>,
}

async fn list(
    connection: &Connection,
    method: &'static str,
    member: &'static str,
    timeout: Duration,
) -> Result<List, CallError> {
    let deadline = Instant::now() + timeout;
    let mut list = List::default();
    let mut seen = HashSet::new();
    let (mut bytes, mut cursor) = (0, None::<String>);
    for _ in 0..PAGE_LIMIT {
        let params = ListParams { cursor: cursor.as_deref(), meta: connection.identity.meta(None) };
        let left = deadline.saturating_duration_since(Instant::now());
        let page = match connection.fetch(method, &params, left).await {
            // A server that declares a list and does not know the method has an empty one.
            Err(CallError::Server { error, .. }) if error.code == METHOD_NOT_FOUND => {
                list.odd.push("declared, but its method is unknown to the server".to_owned());
                return Ok(list);
            }
            other => other?,
        };
        bytes += page.get().len();
        list.good_for = age::shorter(list.good_for, age::hint(&page));
        let page = Page::read(&page, member).map_err(|error| shape(connection, method, error))?;
        list.items.extend(page.items);
        if page.left_out > 0 {
            list.odd.push(format!("{} entries are no objects or too many", page.left_out));
        }
        if list.items.len() > ITEM_LIMIT || bytes > LIST_BYTES {
            list.items.truncate(ITEM_LIMIT);
            list.odd.push(format!("longer than {ITEM_LIMIT} items or {LIST_BYTES} bytes"));
            return Ok(list);
        }
        match page.next_cursor {
            None => return Ok(list),
            Some(next) if next.len() > CURSOR_LIMIT => {
                list.odd.push(format!("a cursor is longer than {CURSOR_LIMIT} bytes"));
                return Ok(list);
            }
            Some(next) if !seen.insert(next.clone()) => {
                list.odd.push("a cursor came twice, the rest is not read".to_owned());
                return Ok(list);
            }
            Some(next) => cursor = Some(next),
        }
    }
    list.odd.push(format!("longer than {PAGE_LIMIT} pages, the rest is not read"));
    Ok(list)
}

const METHOD_NOT_FOUND: i64 = innkeeper_protocol::envelope::code::METHOD_NOT_FOUND;

fn shape(connection: &Connection, method: &'static str, error: ViewError) -> CallError {
    CallError::Protocol {
        server: connection.server.clone(),
        item: method.into(),
        source: ProtocolFault::Shape(error),
    }
}

#[derive(Serialize)]
struct ListParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
}

impl List {
    /// Reads the items; one that is broken, badly named or doubled is left out, never the others.
    async fn read<V>(
        self,
        what: &str,
        read: impl Fn(&RawValue) -> Result<V, ViewError>,
        key: impl Fn(&V) -> &str,
        left_out: &mut Vec<Quarantined>,
    ) -> Vec<Offered<V>> {
        let mut names = HashSet::new();
        let mut kept = Vec::with_capacity(self.items.len());
        let mut turns = Turns::default();
        for odd in self.odd {
            left_out.push(Quarantined { what: format!("list of {what}s"), reason: odd });
        }
        for (index, raw) in self.items.into_iter().enumerate() {
            turns.took(raw.get().len()).await;
            let view = match read(&raw) {
                Ok(view) => view,
                Err(error) => {
                    let reason = error.to_string();
                    left_out.push(Quarantined { what: format!("{what} number {index}"), reason });
                    continue;
                }
            };
            let refused = match what {
                "tool" | "prompt" => name::refuse(key(&view)),
                _ => None,
            };
            let doubled = || names.contains(key(&view)).then_some("the name is taken already");
            if let Some(reason) = refused.or_else(doubled) {
                let name: String = key(&view).chars().take(SHOWN).collect();
                let name = crate::text::display_safe(&name).replace('\n', "\\n");
                let what = format!("{what} `{}`", name.replace('\t', "\\t"));
                left_out.push(Quarantined { what, reason: reason.to_owned() });
                continue;
            }
            names.insert(key(&view).to_owned());
            kept.push(Offered { raw, view });
        }
        kept
    }
}
