//! Reads one list of a server, page by page.

use std::collections::HashSet;
use std::time::Duration;

use innkeeper_config::name;
use innkeeper_protocol::view::Page;
use innkeeper_protocol::{ViewError, method, skim};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::super::list_ttls::ReportedHints;
use super::super::meta::Meta;
use super::{
    Definition, MAX_CURSOR_BYTES, MAX_ITEMS, MAX_LIST_BYTES, MAX_PAGES, MAX_SHOWN_CHARS,
    Quarantined, shape_error,
};
use crate::connection::Connection;
use crate::error::CallError;
use crate::session::CoopBudget;

/// The raw items of one list with its problems.
#[derive(Debug, Default)]
pub(super) struct RawList {
    items: Vec<Box<RawValue>>,
    issues: Vec<String>,
    /// Cache hints of its pages; `None` before the first page.
    pub(super) hints: Option<ReportedHints>,
}

pub(super) async fn fetch_list(
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

#[derive(Serialize)]
struct ListParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a RawValue>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
}

impl RawList {
    /// Parses the items; excludes only malformed, badly named and duplicate items.
    pub(super) async fn parse_items<V>(
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
            let rejection = rejection
                .or_else(|| names.contains(key(&view)).then(|| "duplicate name".to_owned()));
            if let Some(reason) = rejection {
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
