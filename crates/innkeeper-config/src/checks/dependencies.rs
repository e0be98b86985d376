//! Checks across servers: unknown, cyclic or wider shared dependencies, duplicate servers.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use crate::checks::cycles::find_cycles;
use crate::checks::parsed_source::ParsedSource;
use crate::checks::server::ServerDraft;
use crate::diagnostic::{Diagnostic, Severity};
use crate::form::unknown_keys::similar;
use crate::settings::server::TransportConfig;
use crate::text::key_location::{PathSegment, key_segment, locate};
use crate::text::key_path::escape_for_message;

/// A draft with the index of its source and of its entry in that source.
#[derive(Debug)]
pub(crate) struct LocatedDraft {
    pub(crate) source_index: usize,
    pub(crate) entry_index: usize,
    pub(crate) draft: ServerDraft,
}

/// Reports dependencies that are unknown, disabled, repeated, cyclic, or shared by fewer clients than
/// their dependent.
pub(crate) fn check(drafts: &[LocatedDraft], sources: &mut [ParsedSource<'_>]) {
    let names = || drafts.iter().map(|located| located.draft.name.as_str());
    let by_name: HashMap<&str, &ServerDraft> =
        names().zip(drafts.iter().map(|located| &located.draft)).collect();
    for located in drafts.iter().filter(|located| !located.draft.disabled) {
        let own_name = located.draft.name.as_str();
        let mut seen: HashSet<&str> = HashSet::new();
        for (index, name) in &located.draft.dependencies {
            let entry = Some(located.entry_index);
            let mut report = |severity, message: String| {
                report_dependency(sources, located, entry, *index, severity, message);
            };
            if !seen.insert(name) {
                report(
                    Severity::Warning,
                    format!("duplicate dependency `{}`", escape_for_message(name)),
                );
            } else if name == own_name {
                report(Severity::Error, "depends on itself".to_owned());
            } else {
                match by_name.get(name.as_str()) {
                    Some(other) if other.disabled => {
                        report(Severity::Error, format!("`{name}` is disabled"));
                    }
                    Some(other) if other.share > located.draft.share => {
                        check_share(located, other, *index, sources);
                    }
                    Some(_) => {}
                    None => {
                        report(
                            Severity::Error,
                            format!("no server `{}`", escape_for_message(name)),
                        );
                        suggest(name, names().filter(|other| *other != own_name), located, sources);
                    }
                }
            }
        }
    }
    check_cycles(drafts, sources);
}

/// Reports a dependency that fewer clients share than its dependent: the dependent has no process of
/// the dependency that serves all its clients.
fn check_share(
    located: &LocatedDraft,
    other: &ServerDraft,
    index: usize,
    sources: &mut [ParsedSource<'_>],
) {
    let name = &other.name;
    let own = located.draft.share.as_str();
    let narrow = other.share.as_str();
    let message = format!("`{name}` has `share: {narrow}`, but this server has `share: {own}`");
    let entry = Some(located.entry_index);
    report_dependency(sources, located, entry, index, Severity::Error, message);
    let hint = format!(
        "set `\"share\": \"{narrow}\"` for this server, or `\"share\": \"{own}\"` for `{name}`"
    );
    sources[located.source_index].report.hint(hint);
}

/// Maximum number of names compared with an unknown name: bounds the time for a file with thousands
/// of both.
const MAX_COMPARED_NAMES: usize = 256;

fn suggest<'a>(
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
    located: &LocatedDraft,
    sources: &mut [ParsedSource<'_>],
) {
    let report = &mut sources[located.source_index].report;
    if !report.is_full()
        && let Some(suggestion) = similar(name, names.take(MAX_COMPARED_NAMES))
    {
        report.hint(format!("did you mean `{suggestion}`?"));
    }
}

fn check_cycles(drafts: &[LocatedDraft], sources: &mut [ParsedSource<'_>]) {
    let enabled = drafts.iter().filter(|located| !located.draft.disabled);
    let by_name: IndexMap<&str, &LocatedDraft> =
        enabled.map(|located| (located.draft.name.as_str(), located)).collect();
    let edges: IndexMap<&str, Vec<&str>> = by_name
        .iter()
        .map(|(own_name, located)| {
            let others = located.draft.dependencies.iter().map(|(_, name)| name.as_str());
            (*own_name, others.filter(|name| name != own_name).collect())
        })
        .collect();
    for cycle in find_cycles(&edges) {
        let Some((first, next)) = cycle.first().zip(cycle.get(1)) else {
            continue;
        };
        let message = format!("depends on itself: {} -> {first}", cycle.join(" -> "));
        if let Some(located) = by_name.get(first)
            && let Some((index, _)) =
                located.draft.dependencies.iter().find(|(_, name)| name == next)
        {
            // Several servers form the cycle, so the cycle is a problem of the file.
            report_dependency(sources, located, None, *index, Severity::Error, message);
        }
    }
}

/// Reports a problem of a dependency as a problem of `problem_entry`, or of the file.
fn report_dependency(
    sources: &mut [ParsedSource<'_>],
    located: &LocatedDraft,
    problem_entry: Option<usize>,
    index: usize,
    severity: Severity,
    message: String,
) {
    let parsed = &mut sources[located.source_index];
    parsed.report.set_entry(problem_entry);
    if parsed.report.is_full() {
        parsed.report.count_omitted(severity);
        return parsed.report.set_entry(None);
    }
    let entry = &parsed.document.servers[located.entry_index];
    let segments = [key_segment("dependencies"), PathSegment::Index(index)];
    let location = locate(&entry.node, &entry.path, &segments);
    let position = parsed.report.source().position(location.at);
    parsed
        .report
        .push(Diagnostic { severity, ..Diagnostic::error(&position, location.key, message) });
    parsed.report.set_entry(None);
}

/// Warns about two servers with the same process or endpoint.
pub(crate) fn check_duplicates(drafts: &[LocatedDraft], sources: &mut [ParsedSource<'_>]) {
    let mut seen: HashMap<Vec<String>, &str> = HashMap::new();
    for LocatedDraft { source_index: parsed, entry_index, draft } in drafts {
        let Some(config) = &draft.config else {
            continue;
        };
        let Some(launch) = launch_key(&config.transport) else {
            continue;
        };
        match seen.get(&launch) {
            None => {
                seen.insert(launch, &draft.name);
            }
            Some(first) => {
                let parsed = &mut sources[*parsed];
                let entry = &parsed.document.servers[*entry_index];
                let message = format!("same server as `{first}` under another name");
                parsed.report.set_entry(Some(*entry_index));
                parsed.report.warning(entry.at, &entry.path, message);
                parsed.report.set_entry(None);
            }
        }
    }
}

/// Returns the parts of a transport that identify the server; `None` if the name identifies it.
fn launch_key(transport: &TransportConfig) -> Option<Vec<String>> {
    let mut launch = vec![transport.kind().to_owned()];
    let pairs = match transport {
        TransportConfig::InProcess => return None,
        TransportConfig::Stdio { command, args, env, unset_env: _, cwd } => {
            launch.push(command.expose().clone());
            launch.push(args.len().to_string());
            launch.extend(args.iter().map(|arg| arg.expose().clone()));
            launch.extend(cwd.as_ref().map(|cwd| cwd.expose().to_string_lossy().into_owned()));
            env
        }
        TransportConfig::Http { url, headers }
        | TransportConfig::Sse { url, headers }
        | TransportConfig::WebSocket { url, headers } => {
            launch.push(url.expose().clone());
            headers
        }
    };
    let mut pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{name}={}", value.expose())).collect();
    pairs.sort();
    launch.extend(pairs);
    Some(launch)
}
