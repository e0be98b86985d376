//! The dependency graph: start waves, selections, cycles.

use std::collections::{HashMap, HashSet};
use std::fmt;

use indexmap::IndexMap;

use super::{Config, Position, Share};

/// A requested server that the configuration does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", UnknownServerMessage(self))]
pub struct UnknownServer {
    /// Requested name.
    pub name: String,
    /// Position of a disabled entry with this name, if any.
    pub disabled: Option<Position>,
    /// Similar name, if any.
    pub similar: Option<String>,
}

struct UnknownServerMessage<'e>(&'e UnknownServer);

impl fmt::Display for UnknownServerMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownServer { name, disabled, .. } = self.0;
        match disabled {
            Some(position) => write!(f, "server `{name}` is disabled at {position}"),
            None => write!(f, "no server `{name}` in the configuration"),
        }
    }
}

pub(super) fn select(config: &Config, names: &[&str]) -> Result<Config, UnknownServer> {
    let mut keep = HashSet::new();
    for name in names {
        if !config.servers.contains_key(*name) && !config.invalid.contains_key(*name) {
            return Err(unknown_server(config, name));
        }
        let mut open = vec![*name];
        while let Some(name) = open.pop() {
            if keep.insert(name)
                && let Some(server) = config.servers.get(name)
            {
                open.extend(server.dependencies.iter().map(String::as_str));
            }
        }
    }
    let mut only = config.clone();
    let other_keys: Vec<&str> = config
        .servers
        .iter()
        .filter(|(name, _)| !keep.contains(name.as_str()))
        .map(|(_, server)| server.key.as_str())
        .collect();
    only.warnings.retain(|warning| !other_keys.iter().any(|key| is_within(&warning.key, key)));
    only.servers.retain(|name, _| keep.contains(name.as_str()));
    only.invalid.retain(|name, _| keep.contains(name.as_str()));
    only.origin.selected = Some(names.iter().map(|name| (*name).to_owned()).collect());
    Ok(only)
}

pub(super) fn shared_by(config: &Config, share: Share) -> Config {
    let mut only = config.clone();
    only.servers.retain(|_, server| server.share == share);
    let kept: HashSet<String> = only.servers.keys().cloned().collect();
    for server in only.servers.values_mut() {
        server.dependencies.retain(|dependency| kept.contains(dependency));
    }
    if share != Share::Process {
        only.invalid.clear();
        only.warnings.clear();
    }
    only
}

/// Returns whether a key is this entry or a key inside the entry.
fn is_within(key: &str, entry: &str) -> bool {
    key.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn unknown_server(config: &Config, name: &str) -> UnknownServer {
    UnknownServer {
        name: name.to_owned(),
        disabled: config.disabled.get(name).cloned(),
        similar: super::unknown_keys::similar(
            name,
            config.servers.keys().chain(config.invalid.keys()).map(String::as_str),
        )
        .map(str::to_owned),
    }
}

pub(super) fn waves(config: &Config) -> Vec<Vec<&str>> {
    let mut waiting: Vec<usize> = vec![0; config.servers.len()];
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); config.servers.len()];
    for (index, server) in config.servers.values().enumerate() {
        for dependency in &server.dependencies {
            if let Some(dependency) = config.servers.get_index_of(dependency) {
                waiting[index] += 1;
                dependents[dependency].push(index);
            }
        }
    }
    let mut waves = Vec::new();
    let mut wave: Vec<usize> = (0..waiting.len()).filter(|index| waiting[*index] == 0).collect();
    while !wave.is_empty() {
        let mut next = Vec::new();
        for dependent in wave.iter().flat_map(|index| &dependents[*index]) {
            waiting[*dependent] -= 1;
            if waiting[*dependent] == 0 {
                next.push(*dependent);
            }
        }
        next.sort_unstable();
        waves.push(std::mem::replace(&mut wave, next));
    }
    let name = |index: usize| config.servers.get_index(index).map(|(name, _)| name.as_str());
    waves.into_iter().map(|wave| wave.into_iter().filter_map(name).collect()).collect()
}

/// Maximum number of reported cycles; more would not help the reader.
const MAX_CYCLES: usize = 16;

/// Returns the cycles in `edges`, each as a path of names.
pub(super) fn find_cycles<'a>(edges: &IndexMap<&'a str, Vec<&'a str>>) -> Vec<Vec<&'a str>> {
    let mut done: HashSet<&str> = HashSet::new();
    let mut cycles = Vec::new();
    for start in edges.keys() {
        find_cycles_from(edges, start, &mut done, &mut cycles);
    }
    cycles
}

/// Follows the edges depth first, without recursion: a chain may be as long as the file allows.
fn find_cycles_from<'a>(
    edges: &IndexMap<&'a str, Vec<&'a str>>,
    start: &'a str,
    done: &mut HashSet<&'a str>,
    cycles: &mut Vec<Vec<&'a str>>,
) {
    let mut path: Vec<(&str, usize)> = vec![(start, 0)];
    let mut positions: HashMap<&str, usize> = HashMap::from([(start, 0)]);
    while let Some((name, next)) = path.last_mut() {
        let (name, edge) = (*name, *next);
        *next += 1;
        let target = match edges.get(name).and_then(|targets| targets.get(edge)) {
            Some(target) if !done.contains(name) => *target,
            _ => {
                done.insert(name);
                positions.remove(name);
                path.pop();
                continue;
            }
        };
        if let Some(from) = positions.get(target) {
            if cycles.len() < MAX_CYCLES {
                cycles.push(path[*from..].iter().map(|(name, _)| *name).collect());
            }
        } else if edges.contains_key(target) && !done.contains(target) {
            positions.insert(target, path.len());
            path.push((target, 0));
        }
    }
}
