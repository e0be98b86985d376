//! What only all servers together can tell: dependencies that do not exist or go in circles, and
//! servers that are the same one twice.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use super::check::Draft;
use super::graph;
use super::load::Part;
use super::place::{Step, key, locate};
use super::problem::{Problem, Severity};
use super::server::TransportConfig;
use super::trail::shown;
use super::unknown::similar;

/// A draft and where its entry is: which file, which of its servers.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) part: usize,
    pub(super) entry: usize,
    pub(super) draft: Draft,
}

/// Tells about dependencies on nobody, on oneself, on what is switched off, and in circles.
pub(super) fn check(drafts: &[Located], parts: &mut [Part<'_>]) {
    let names = || drafts.iter().map(|located| located.draft.name.as_str());
    let state: HashMap<&str, bool> =
        names().zip(drafts.iter().map(|located| located.draft.disabled)).collect();
    for located in drafts.iter().filter(|located| !located.draft.disabled) {
        let own = located.draft.name.as_str();
        let mut seen: HashSet<&str> = HashSet::new();
        for (index, name) in &located.draft.dependencies {
            let mut tell = |severity, message: String| {
                tell(parts, located, *index, severity, message);
            };
            if !seen.insert(name) {
                tell(Severity::Warning, format!("`{}` is named twice", shown(name)));
            } else if name == own {
                tell(Severity::Error, "depends on itself".to_owned());
            } else {
                match state.get(name.as_str()) {
                    Some(false) => {}
                    Some(true) => tell(Severity::Error, format!("`{name}` is disabled")),
                    None => {
                        tell(Severity::Error, format!("no server `{}`", shown(name)));
                        suggest(name, names().filter(|other| *other != own), located, parts);
                    }
                }
            }
        }
    }
    check_cycles(drafts, parts);
}

/// How many names a wrong one is compared with, so that thousands of both take no minutes.
const COMPARED: usize = 256;

fn suggest<'a>(
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
    located: &Located,
    parts: &mut [Part<'_>],
) {
    let report = &mut parts[located.part].report;
    if !report.is_full()
        && let Some(meant) = similar(name, names.take(COMPARED))
    {
        report.hint(format!("did you mean `{meant}`?"));
    }
}

fn check_cycles(drafts: &[Located], parts: &mut [Part<'_>]) {
    let enabled = drafts.iter().filter(|located| !located.draft.disabled);
    let by_name: IndexMap<&str, &Located> =
        enabled.map(|located| (located.draft.name.as_str(), located)).collect();
    let edges: IndexMap<&str, Vec<&str>> = by_name
        .iter()
        .map(|(own, located)| {
            let others = located.draft.dependencies.iter().map(|(_, name)| name.as_str());
            (*own, others.filter(|name| name != own).collect())
        })
        .collect();
    for cycle in graph::cycles(&edges) {
        let Some((first, next)) = cycle.first().zip(cycle.get(1)) else {
            continue;
        };
        let message = format!("depends on itself: {} -> {first}", cycle.join(" -> "));
        if let Some(located) = by_name.get(first)
            && let Some((index, _)) =
                located.draft.dependencies.iter().find(|(_, name)| name == next)
        {
            tell(parts, located, *index, Severity::Error, message);
        }
    }
}

fn tell(
    parts: &mut [Part<'_>],
    located: &Located,
    index: usize,
    severity: Severity,
    message: String,
) {
    let part = &mut parts[located.part];
    if part.report.is_full() {
        return part.report.count(severity);
    }
    let entry = &part.document.servers[located.entry];
    let steps = [key("dependencies"), Step::Index(index)];
    let place = locate(&entry.node, &entry.path, &steps);
    let position = part.report.source().position(place.at);
    part.report.push(Problem { severity, ..Problem::error(&position, place.key, message) });
}

/// Warns about a server that would be started, or reached, a second time under another name.
pub(super) fn check_twins(drafts: &[Located], parts: &mut [Part<'_>]) {
    let mut seen: HashMap<Vec<String>, &str> = HashMap::new();
    for Located { part, entry, draft } in drafts {
        let Some(config) = &draft.config else {
            continue;
        };
        match seen.get(&launch_of(&config.transport)) {
            None => {
                seen.insert(launch_of(&config.transport), &draft.name);
            }
            Some(first) => {
                let part = &mut parts[*part];
                let entry = &part.document.servers[*entry];
                let message = format!("the same server as `{first}` under another name");
                part.report.warning(entry.at, &entry.path, message);
            }
        }
    }
}

/// Everything that makes two transports lead to the same server.
fn launch_of(transport: &TransportConfig) -> Vec<String> {
    let mut launch = vec![transport.kind().to_owned()];
    let pairs = match transport {
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
    launch
}
