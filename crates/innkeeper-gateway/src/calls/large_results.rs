//! Large results of tool calls: what a client gets in their place, and the access to them.

use std::sync::Arc;

use innkeeper_host::config::LargeResults as LargeResultLimits;
use innkeeper_protocol::{Era, Revision, envelope, skim};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::bindings::Endpoints;
use crate::caller::Caller;
use crate::error::{ErrorKind, RpcError};
use crate::gateway_tools::{
    DEFAULT_MATCHES, DEFAULT_PAGE_BYTES, GatewayTool, MAX_MATCHES, MAX_PAGE_BYTES, ToolOutput,
    parse,
};
use crate::json_text::complete_result;
use crate::request::Reply;
use crate::stored_results::{
    JsonSelection, StoredResult, StoredResults, TextPattern, URI_PREFIX, select, text_page,
};
use crate::tasks::Computations;

/// Maximum number of bytes of the shown start of a stored text.
const MAX_HEAD_BYTES: usize = 2 << 10;

/// Maximum number of text blocks of one result that are stored each on its own; the content of a
/// result with more large blocks is stored as a whole.
const MAX_STORED_BLOCKS: usize = 8;

/// The arguments of `read_result`.
#[derive(Deserialize)]
struct ReadArguments {
    uri: String,
    offset: Option<f64>,
    limit: Option<f64>,
}

/// The arguments of `search_result`.
#[derive(Deserialize)]
struct SearchArguments {
    uri: String,
    pattern: String,
    offset: Option<f64>,
    limit: Option<f64>,
}

/// The arguments of `select_result`.
#[derive(Deserialize)]
struct SelectArguments {
    uri: String,
    pointer: String,
    limit: Option<f64>,
}

/// The large results of all clients.
#[derive(Debug)]
pub(super) struct LargeResults {
    endpoints: Arc<Endpoints>,
    stored: StoredResults,
    /// Searches, also those for tools.
    pub(super) computations: Computations,
}

impl LargeResults {
    /// `replica` is the id of this replica, if there are several.
    pub(super) fn new(endpoints: Arc<Endpoints>, replica: Option<&str>) -> Self {
        Self {
            endpoints,
            stored: StoredResults::new(replica),
            computations: Computations::default(),
        }
    }

    pub(super) fn remove_expired(&self) {
        self.stored.remove_expired();
    }

    /// Stores the texts and the structured content of a result that are above the limit of the
    /// endpoint. Returns the result with the start and the URI of each in its place. Every other
    /// result stays byte for byte.
    pub(super) fn store(
        &self,
        caller: &Caller,
        tool: &str,
        result: Box<RawValue>,
    ) -> Box<RawValue> {
        let Some(limits) = self.endpoints.options(caller.endpoint).large_results else {
            return result;
        };
        let max_bytes = usize::try_from(limits.bytes).unwrap_or(usize::MAX);
        if result.get().len() <= max_bytes {
            return result;
        }
        let storing = Storing { stored: &self.stored, caller, tool, limits, max_bytes };
        let replaced = storing.replace(result.get());
        replaced.and_then(|text| RawValue::from_string(text).ok()).unwrap_or(result)
    }

    /// Runs a tool that reads a stored result.
    pub(super) async fn query(
        &self,
        caller: &Caller,
        tool: GatewayTool,
        arguments: &str,
    ) -> ToolOutput {
        match tool {
            GatewayTool::SearchResult => {
                let arguments: SearchArguments = parse(tool, arguments)?;
                let pattern =
                    TextPattern::new(&arguments.pattern).map_err(|error| error.to_string())?;
                let offset = integer(arguments.offset, 0, usize::MAX);
                let limit = integer(arguments.limit, DEFAULT_MATCHES, MAX_MATCHES as usize).max(1);
                self.with_result(caller, &arguments.uri, move |stored| {
                    let found = pattern.search(&stored.text, offset, limit);
                    let matches = found
                        .matches
                        .iter()
                        .map(|found| json!({ "offset": found.offset, "text": found.text }));
                    let matches: Vec<Value> = matches.collect();
                    let next = found.next_offset;
                    Ok(vec![json!({ "matches": matches, "nextOffset": next }).to_string()])
                })
                .await
            }
            GatewayTool::SelectResult => {
                let arguments: SelectArguments = parse(tool, arguments)?;
                let pointer = arguments.pointer;
                let limit = page_bytes(arguments.limit);
                self.with_result(caller, &arguments.uri, move |stored| {
                    selected(stored, &pointer, limit)
                })
                .await
            }
            _ => {
                let arguments: ReadArguments = parse(tool, arguments)?;
                let offset = integer(arguments.offset, 0, usize::MAX);
                let limit = page_bytes(arguments.limit);
                let stored = self.find(caller, &arguments.uri)?;
                Ok(read(&stored, offset, limit))
            }
        }
    }

    fn find(&self, caller: &Caller, uri: &str) -> Result<Arc<StoredResult>, String> {
        let stored = self.stored.find(&caller.principal, uri);
        stored.map(|(stored, _)| stored).ok_or_else(|| not_stored(uri))
    }

    async fn with_result(
        &self,
        caller: &Caller,
        uri: &str,
        work: impl FnOnce(&StoredResult) -> ToolOutput + Send + 'static,
    ) -> ToolOutput {
        let stored = self.find(caller, uri)?;
        let output = self.computations.run(&caller.principal, move || work(&stored)).await;
        output.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Returns the response to `resources/read` if the URI is one of a stored result.
    pub(super) fn read(&self, caller: &Caller, uri: &str) -> Option<Reply> {
        self.endpoints.options(caller.endpoint).large_results?;
        if !uri.starts_with(URI_PREFIX) {
            return None;
        }
        let Some((stored, remaining)) = self.stored.find(&caller.principal, uri) else {
            let code = match caller.era() {
                Era::Legacy => envelope::code::RESOURCE_NOT_FOUND,
                Era::Modern => envelope::code::INVALID_PARAMS,
            };
            let data = to_raw_value(&json!({ "uri": uri })).ok();
            let kind = ErrorKind::UnknownItem;
            let message = not_stored(uri);
            return Some(Err(RpcError { kind, code, message, data }));
        };
        let content = json!({ "uri": uri, "mimeType": stored.mime_type(), "text": stored.text });
        let mut result = json!({ "contents": [content] });
        if caller.era() == Era::Modern {
            result["ttlMs"] = u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX).into();
            result["cacheScope"] = "private".into();
        }
        let result = to_raw_value(&result)
            .map_err(|error| RpcError::new(envelope::code::INTERNAL_ERROR, error.to_string()));
        Some(result.map(|result| complete_result(result, caller.era())))
    }
}

/// The same error for a result that has expired, that was replaced, and that belongs to another
/// principal.
fn not_stored(uri: &str) -> String {
    format!(
        "no stored result `{}`: it has expired, or newer results have replaced it; call the tool \
         again",
        innkeeper_host::display_safe(uri)
    )
}

/// Returns a number of the arguments, at most `max`.
fn integer(number: Option<f64>, default: u32, max: usize) -> usize {
    // A float converts to the nearest integer of the type.
    (number.unwrap_or(default.into()) as usize).min(max)
}

fn page_bytes(limit: Option<f64>) -> usize {
    integer(limit, DEFAULT_PAGE_BYTES, MAX_PAGE_BYTES as usize).max(1)
}

/// Returns the text of a page and its place.
fn read(stored: &StoredResult, offset: usize, limit: usize) -> Vec<String> {
    let page = text_page(&stored.text, offset, limit);
    let size = stored.text.len();
    let next = (page.end < size).then_some(page.end);
    let place = json!({ "offset": page.start, "nextOffset": next, "size": size });
    vec![stored.text.get(page).unwrap_or_default().to_owned(), place.to_string()]
}

/// Returns the text of a selected value, and its type and place.
fn selected(stored: &StoredResult, pointer: &str, limit: usize) -> ToolOutput {
    let JsonSelection { range, kind, count, keys } =
        select(&stored.text, pointer).map_err(|error| error.to_string())?;
    let value = stored.text.get(range.clone()).unwrap_or_default();
    let page = text_page(value, 0, limit);
    let next = (page.end < value.len()).then_some(range.start + page.end);
    let mut place = json!({
        "type": kind, "offset": range.start, "nextOffset": next, "size": value.len(),
    });
    if let Some(count) = count {
        place["count"] = count.into();
    }
    if let Some(keys) = keys {
        place["keys"] = keys.into();
    }
    Ok(vec![value.get(page).unwrap_or_default().to_owned(), place.to_string()])
}

/// The replacement of the large parts of one result.
struct Storing<'a> {
    stored: &'a StoredResults,
    caller: &'a Caller,
    tool: &'a str,
    limits: LargeResultLimits,
    max_bytes: usize,
}

struct StoredPart {
    uri: String,
    head: String,
    bytes: usize,
    mime_type: &'static str,
}

impl Storing<'_> {
    /// Returns the changed result, or `None` if nothing is stored.
    fn replace(&self, result: &str) -> Option<String> {
        let content = skim::member(result, "content").unwrap_or("[]");
        let mut blocks: Vec<String> = skim::elements(content).map(ToOwned::to_owned).collect();
        let mut parts = self.store_texts(content, &mut blocks);
        let has_text = !parts.is_empty();
        let structured = skim::member(result, "structuredContent")
            .filter(|content| content.len() > self.max_bytes)
            .and_then(|content| self.store(content.to_owned(), true));
        let mut result = result.to_owned();
        if let Some(part) = structured {
            // The text usually has the same content.
            if !has_text {
                blocks.push(text_block(&part.head));
            }
            result = skim::remove_member(&result, "structuredContent");
            parts.push(part);
        }
        if parts.is_empty() {
            return None;
        }
        blocks.push(text_block(&self.notice(&parts)));
        // Clients of earlier revisions do not know links.
        if self.caller.identity.revision >= Revision::V2025_06_18 {
            blocks.extend(parts.iter().map(|part| self.link(part)));
        }
        Some(skim::replace_member(&result, "content", &format!("[{}]", blocks.join(","))))
    }

    /// Stores the texts that are larger than their share of the limit, if all texts together are
    /// above the limit; then the others together are within the limit.
    fn store_texts(&self, content: &str, blocks: &mut Vec<String>) -> Vec<StoredPart> {
        let texts = blocks.iter().enumerate().filter_map(|(index, block)| {
            let kind = skim::member(block, "type").and_then(skim::decode_string)?;
            let text = skim::member(block, "text").filter(|_| kind == "text")?;
            Some((index, text.len()))
        });
        let texts: Vec<(usize, usize)> = texts.collect();
        let sum: usize = texts.iter().map(|(_, bytes)| bytes).sum();
        if sum <= self.max_bytes {
            return Vec::new();
        }
        let large =
            texts.iter().filter(|(_, bytes)| bytes.saturating_mul(texts.len()) > self.max_bytes);
        let large: Vec<usize> = large.map(|(index, _)| *index).collect();
        if large.len() > MAX_STORED_BLOCKS {
            let Some(part) = self.store(content.to_owned(), true) else { return Vec::new() };
            let mut index = 0;
            blocks.retain(|_| {
                index += 1;
                texts.iter().all(|(text, _)| text + 1 != index)
            });
            blocks.insert(0, text_block(&part.head));
            return vec![part];
        }
        large
            .into_iter()
            .filter_map(|index| {
                let block = blocks.get_mut(index)?;
                let part = self.store_text(skim::member(block, "text")?)?;
                let head = Value::from(part.head.as_str()).to_string();
                *block = skim::replace_member(block, "text", &head);
                Some(part)
            })
            .collect()
    }

    /// Stores the text of a JSON string. A string with half a character is stored as JSON.
    fn store_text(&self, text: &str) -> Option<StoredPart> {
        match serde_json::from_str::<String>(text) {
            Ok(decoded) => self.store(decoded, false),
            Err(_) => self.store(text.to_owned(), true),
        }
    }

    fn store(&self, text: String, is_json: bool) -> Option<StoredPart> {
        let head = text.get(text_page(&text, 0, MAX_HEAD_BYTES.min(self.max_bytes)))?.to_owned();
        let stored = StoredResult { text, is_json };
        let bytes = stored.text.len();
        let mime_type = stored.mime_type();
        let principal = &self.caller.principal;
        let uri = self.stored.insert(principal, stored, self.limits.ttl);
        if uri.is_none() {
            tracing::warn!(tool = self.tool, bytes, "large result not stored");
        }
        Some(StoredPart { uri: uri?, head, bytes, mime_type })
    }

    fn notice(&self, parts: &[StoredPart]) -> String {
        let seconds = self.limits.ttl.as_secs_f64();
        let mut notice = format!(
            "The result is large: only its start is above. The gateway keeps the whole for {seconds} \
             seconds, or until newer results replace it:"
        );
        for StoredPart { uri, head, bytes, mime_type } in parts {
            let shown = head.len();
            notice.push_str(&format!(
                "\n{uri} ({mime_type}, {bytes} bytes; the first {shown} bytes are its start)"
            ));
        }
        notice.push_str(
            "\nRead on with `read_result`, find text with `search_result`, and read single values \
             of JSON with `select_result`.",
        );
        notice
    }

    fn link(&self, part: &StoredPart) -> String {
        json!({
            "type": "resource_link",
            "uri": part.uri,
            "name": format!("{} result", self.tool),
            "mimeType": part.mime_type,
            "size": part.bytes,
        })
        .to_string()
    }
}

fn text_block(text: &str) -> String {
    json!({ "type": "text", "text": text }).to_string()
}
