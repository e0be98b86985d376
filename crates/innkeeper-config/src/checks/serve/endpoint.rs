//! Checks the named endpoints.

use indexmap::IndexMap;

use super::{known_names, name_style, seconds, size, tool_filter};
use crate::checks::entry_checker::EntryChecker;
use crate::form::raw;
use crate::settings::serve::{EndpointConfig, LargeResults, NameStyle};
use crate::text::key_location::{PathSegment, key_segment};

/// Maximum length of the name of an endpoint, in characters.
const MAX_ENDPOINT_NAME_CHARS: usize = 64;

pub(super) fn endpoints(
    checker: &mut EntryChecker<'_>,
    typed: Option<IndexMap<String, raw::Endpoint>>,
    names: NameStyle,
    servers: &[String],
) -> IndexMap<String, EndpointConfig> {
    let mut endpoints = IndexMap::new();
    for (name, typed) in typed.unwrap_or_default() {
        let path = [key_segment("endpoints"), key_segment(&name)];
        if !is_endpoint_name(&name) {
            let message = "the name of an endpoint has letters, digits, `_` and `-`, at most 64 \
                characters";
            checker.error(&path, message);
        }
        let endpoint = endpoint(checker, &path, typed, names, servers);
        endpoints.insert(name, endpoint);
    }
    endpoints
}

fn is_endpoint_name(name: &str) -> bool {
    (1..=MAX_ENDPOINT_NAME_CHARS).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn endpoint(
    checker: &mut EntryChecker<'_>,
    path: &[PathSegment<'_>],
    typed: raw::Endpoint,
    names: NameStyle,
    servers: &[String],
) -> EndpointConfig {
    let inner = |key| [path, &[key_segment(key)]].concat();
    let selected = typed.servers.map(|list| {
        let known = servers.iter().map(String::as_str);
        known_names(checker, &inner("servers"), "server", list, &known)
    });
    let search = typed.search.unwrap_or(false);
    if !search && typed.pinned.is_some() {
        checker.error(&inner("pinned"), "needs `\"search\": true`");
    }
    let large_results = typed.large_results.map(|typed| {
        let defaults = LargeResults::default();
        let path = [&inner("largeResults")[..], &[key_segment("bytes")]].concat();
        LargeResults {
            bytes: size(checker, &path, typed.bytes).unwrap_or(defaults.bytes),
            ttl: seconds(typed.ttl).unwrap_or(defaults.ttl),
        }
    });
    let tools = typed.tools.unwrap_or_default();
    EndpointConfig {
        servers: selected,
        tools: tool_filter(tools.allow, tools.deny),
        names: typed.names.map_or(names, name_style),
        search,
        pinned: raw::strings(typed.pinned),
        large_results,
    }
}
