//! Checks the `serve` object and converts the object to settings.

mod approval;
mod auth;
mod console;
mod endpoint;
mod web;

use std::net::SocketAddr;
use std::time::Duration;

use indexmap::IndexMap;

use crate::checks::entry_checker::EntryChecker;
use crate::checks::parsed_source::ParsedSource;
use crate::diagnostic::Position;
use crate::form::document::ServerEntry;
use crate::form::raw_value::ByteSize;
use crate::form::{raw, unknown_keys, validate};
use crate::settings::filter::ToolFilter;
use crate::settings::serve::{NameStyle, Rate, RateConfig, ServeConfig, ServeLimits};
use crate::text::key_location::{PathSegment, key_segment};
use crate::text::key_path::escape_for_message;
use crate::text::tree::JsonMember;

/// Returns the settings of the gateway. Only one file may contain `serve`.
///
/// After an error, the returned settings are incomplete; the error rejects the configuration.
pub(crate) fn serve(sources: &mut [ParsedSource<'_>]) -> Option<ServeConfig> {
    let entries = sources.iter().flat_map(|source| &source.document.servers);
    let servers: Vec<String> = entries.map(|entry| entry.name.clone()).collect();
    let mut first: Option<Position> = None;
    let mut config = None;
    for source in sources {
        let Some(member) = source.document.serve.take() else { continue };
        if let Some(first) = &first {
            source.report.error(member.at, "serve", format!("already set at {first}"));
            continue;
        }
        first = Some(source.report.source().position(member.at));
        config = Some(section(member, &servers, source));
    }
    config
}

fn section(member: JsonMember, servers: &[String], source: &mut ParsedSource<'_>) -> ServeConfig {
    let value = validate::serve(&member.value, "serve", &mut source.report);
    let typed: raw::Serve = serde_json::from_value(value).unwrap_or_else(|_| {
        if !source.report.has_error(None) {
            source.report.error(member.at, "serve", "does not match the schema");
        }
        raw::Serve::default()
    });
    // The checker reports problems by the node and the path of an entry.
    let entry = ServerEntry {
        name: member.key,
        at: member.at,
        path: "serve".to_owned(),
        foreign: false,
        milliseconds: false,
        node: member.value,
        extra: Vec::new(),
        has_valid_name: true,
    };
    let mut checker = EntryChecker {
        entry: &entry,
        scope: &source.scope,
        report: &mut source.report,
        env_file: None,
    };
    convert(&mut checker, typed, servers)
}

fn convert(checker: &mut EntryChecker<'_>, typed: raw::Serve, servers: &[String]) -> ServeConfig {
    let defaults = ServeConfig::default();
    let names = typed.names.map_or(defaults.names, name_style);
    let endpoints: Vec<String> = typed.endpoints.iter().flat_map(IndexMap::keys).cloned().collect();
    let known = KnownNames { servers, endpoints: &endpoints };
    let auth = typed.auth.map(|auth| auth::auth(checker, auth, known)).unwrap_or_default();
    let console = typed.console.map(|typed| console::console(checker, typed, &auth));
    ServeConfig {
        listen: typed.listen.and_then(|text| listen(checker, &text)).unwrap_or(defaults.listen),
        allow_unauthenticated: typed.allow_unauthenticated.unwrap_or(false),
        names,
        allowed_origins: web::origins(checker, typed.allowed_origins),
        allowed_hosts: web::hosts(checker, typed.allowed_hosts),
        auth,
        rate: typed
            .rate
            .map(|typed| rate(checker, &[key_segment("rate")], typed))
            .unwrap_or_default(),
        approval: typed
            .approval
            .map(|typed| approval::approval(checker, typed))
            .unwrap_or_default(),
        limits: typed.limits.map(|typed| limits(checker, typed)).unwrap_or_default(),
        console: console.unwrap_or_default(),
        endpoints: endpoint::endpoints(checker, typed.endpoints, names, servers),
    }
}

/// The names of the configuration that `serve` can refer to.
#[derive(Clone, Copy)]
struct KnownNames<'a> {
    servers: &'a [String],
    /// The names of the named endpoints.
    endpoints: &'a [String],
}

fn listen(checker: &mut EntryChecker<'_>, text: &str) -> Option<SocketAddr> {
    let segments = [key_segment("listen")];
    let address = checker.expand(&segments, text)?.value.parse().ok();
    if address.is_none() {
        checker.error(&segments, "expected an IP address with a port, such as `127.0.0.1:7300`");
    }
    address
}

fn name_style(typed: raw::NameStyle) -> NameStyle {
    match typed {
        raw::NameStyle::Prefixed => NameStyle::Prefixed,
        raw::NameStyle::Flat => NameStyle::Flat,
    }
}

fn limits(checker: &mut EntryChecker<'_>, typed: raw::ServeLimits) -> ServeLimits {
    let defaults = ServeLimits::default();
    let mut bytes = |key, typed| size(checker, &[key_segment("limits"), key_segment(key)], typed);
    ServeLimits {
        body_bytes: bytes("bodyBytes", typed.body_bytes).unwrap_or(defaults.body_bytes),
        header_bytes: bytes("headerBytes", typed.header_bytes).unwrap_or(defaults.header_bytes),
        memory: bytes("memory", typed.memory),
        request_time: seconds(typed.request_seconds).unwrap_or(defaults.request_time),
        idle_session_time: seconds(typed.idle_session_seconds)
            .unwrap_or(defaults.idle_session_time),
        sessions: typed.sessions.unwrap_or(defaults.sessions),
        connections_per_address: typed
            .connections_per_address
            .unwrap_or(defaults.connections_per_address),
        processes: typed.processes.unwrap_or(defaults.processes),
    }
}

/// Returns the rates, with `segments` as the path of their object.
fn rate(
    checker: &mut EntryChecker<'_>,
    segments: &[PathSegment<'_>],
    typed: raw::RequestRate,
) -> RateConfig {
    let requests = match (typed.per_minute, typed.burst) {
        (None, None) => None,
        (per_minute, burst) => one_rate(checker, segments, per_minute, burst),
    };
    let tools = typed.tools.unwrap_or_default().into_iter();
    let tools = tools.filter_map(|(pattern, raw::CallRate { per_minute, burst })| {
        let tool_segments = [segments, &[key_segment("tools"), key_segment(&pattern)]].concat();
        let rate = one_rate(checker, &tool_segments, per_minute, burst)?;
        Some((pattern, rate))
    });
    RateConfig { requests, tools: tools.collect() }
}

fn one_rate(
    checker: &mut EntryChecker<'_>,
    segments: &[PathSegment<'_>],
    per_minute: Option<u32>,
    burst: Option<u32>,
) -> Option<Rate> {
    if per_minute.is_none() {
        checker.error(segments, "needs `perMinute`");
    }
    let per_minute = per_minute?;
    Some(Rate { per_minute, burst: burst.unwrap_or(per_minute) })
}

/// Returns a size within the limits, which a JSON Schema cannot express for a size with a unit.
fn size(
    checker: &mut EntryChecker<'_>,
    segments: &[PathSegment<'_>],
    typed: Option<ByteSize>,
) -> Option<u64> {
    let bytes = typed?.bytes();
    if bytes.is_none() {
        checker.error(segments, "expected a size from 1 KiB to 1 TiB");
    }
    bytes
}

fn seconds(typed: Option<f64>) -> Option<Duration> {
    typed.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

/// Returns the filter with these lists.
fn tool_filter(
    allow: Option<Vec<raw::StringElement>>,
    deny: Option<Vec<raw::StringElement>>,
) -> ToolFilter {
    ToolFilter {
        allow: allow.map(|allow| raw::strings(Some(allow))),
        deny: raw::strings(deny),
        ..ToolFilter::default()
    }
}

/// Returns the names of a list of servers or endpoints. An unknown name is an error, with `path` as the path of
/// the list.
fn known_names<'a>(
    checker: &mut EntryChecker<'_>,
    path: &[PathSegment<'_>],
    kind: &str,
    list: Vec<raw::StringElement>,
    known: &(impl Iterator<Item = &'a str> + Clone),
) -> Vec<String> {
    let names: Vec<(usize, String)> = indexed(Some(list)).collect();
    for (index, name) in &names {
        if known.clone().any(|known| known == name) {
            continue;
        }
        let path = [path, &[PathSegment::Index(*index)]].concat();
        checker.error(&path, format!("no {kind} `{}`", escape_for_message(name)));
        if let Some(similar) = unknown_keys::similar(name, known.clone()) {
            checker.report.hint(format!("did you mean `{similar}`?"));
        }
    }
    names.into_iter().map(|(_, name)| name).collect()
}

/// Returns the valid strings of a list with their indexes.
fn indexed(list: Option<Vec<raw::StringElement>>) -> impl Iterator<Item = (usize, String)> {
    let elements = list.into_iter().flatten().enumerate();
    elements.filter_map(|(index, raw::StringElement(text))| Some((index, text?)))
}
