//! `tools/list`, `prompts/list`, `resources/list` and `resources/templates/list`.

use innkeeper_host::{CacheScope, ListCacheHint};
use innkeeper_protocol::envelope::code;
use innkeeper_protocol::{Era, skim};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Methods;
use crate::error::RpcError;
use crate::offering::ListKind;
use crate::offers::CallerOffering;
use crate::request::{ClientRequest, Reply};

impl Methods {
    /// Returns the time to live in milliseconds and the scope of a list of all servers: the shortest
    /// time, and 0 if a server with the list gives none; `public` only if every server says so, and
    /// all clients get the same list.
    fn list_cache_hints(&self, offering: &CallerOffering, kind: ListKind) -> (u128, &'static str) {
        let capability = match kind {
            ListKind::Tools => "tools",
            ListKind::Prompts => "prompts",
            ListKind::Resources | ListKind::ResourceTemplates => "resources",
        };
        let servers = offering.servers.iter().filter(|server| server.declares(capability));
        let hints: Option<Vec<ListCacheHint>> =
            servers.map(|server| server.list_cache_hint(kind)).collect();
        let hints = hints.unwrap_or_default();
        let ttl = hints.iter().map(|hint| hint.remaining).min().unwrap_or_default();
        let is_public = !hints.is_empty()
            && hints.iter().all(|hint| hint.scope == CacheScope::Public)
            && (kind != ListKind::Tools || self.offers.policy.is_same_for_all())
            && self.offers.endpoints.are_same_for_all()
            && !offering.view.is_private();
        (ttl.as_millis(), if is_public { "public" } else { "private" })
    }

    pub(super) async fn list(&self, request: &ClientRequest<'_>, kind: ListKind) -> Reply {
        let offering = self.offers.offering(request.caller).await?;
        let cursor = match request.param("cursor") {
            None | Some("null") => None,
            Some(cursor) => {
                let cursor = skim::decode_string(cursor)
                    .ok_or_else(|| RpcError::invalid_params("`params/cursor` must be a string"))?;
                // Clients in Go send an empty cursor for none.
                Some(cursor).filter(|cursor| !cursor.is_empty())
            }
        };
        let page = offering.list(kind).page(cursor.as_deref()).map_err(|_| {
            RpcError::invalid_params(
                "`params/cursor` is not a cursor of the current list: request the list from its start",
            )
        })?;
        let items: Vec<&str> = page
            .items
            .iter()
            .filter(|item| {
                kind != ListKind::Tools
                    || self.offers.shows_tool(request.caller, &offering, &item.name)
            })
            .map(|item| item.text.as_str())
            .collect();
        let length = items.iter().map(|item| item.len() + 1).sum::<usize>();
        let mut text = String::with_capacity(length + 128);
        text.push('{');
        if request.caller.era() == Era::Modern {
            let (ttl_ms, scope) = self.list_cache_hints(&offering, kind);
            text.push_str(&format!(
                r#""resultType":"complete","ttlMs":{ttl_ms},"cacheScope":"{scope}","#
            ));
        }
        text.push_str(&format!("\"{}\":[", kind.member()));
        text.push_str(&items.join(","));
        text.push(']');
        if let Some(next) = page.next {
            text.push_str(&format!(",\"nextCursor\":{}", Value::from(next)));
        }
        text.push('}');
        RawValue::from_string(text)
            .map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))
    }
}
