//! Who depends on whom: waves to start in, selections that stay whole, cycles found.

use std::collections::{HashMap, HashSet};
use std::fmt;

use indexmap::IndexMap;

use super::{Config, Position};

/// A server was asked for that the configuration does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", Words(self))]
pub struct UnknownServer {
    /// The name that was asked for.
    pub name: String,
    /// Where an entry of that name is, if there is one that is switched off.
    pub disabled: Option<Position>,
    /// A name that looks like it.
    pub similar: Option<String>,
}

struct Words<'e>(&'e UnknownServer);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownServer { name, disabled, .. } = self.0;
        match disabled {
            Some(position) => write!(f, "server `{name}` is disabled at {position}"),
            None => write!(f, "no server `{name}` in the configuration"),
        }
    }
}

pub(super) fn only(config: &Config, wanted: &[&str]) -> Result<Config, UnknownServer> {
    let mut keep = HashSet::new();
    for name in wanted {
        if !config.servers.contains_key(*name) {
            return Err(unknown(config, name));
        }
        let mut open = vec![*name];
        while let Some(name) = open.pop() {
            if let Some(server) = config.servers.get(name)
                && keep.insert(name)
            {
                open.extend(server.dependencies.iter().map(String::as_str));
            }
        }
    }
    let servers = config.servers.iter().filter(|(name, _)| keep.contains(name.as_str()));
    let servers = servers.map(|(name, server)| (name.clone(), server.clone())).collect();
    let mut only = Config { servers, ..config.clone() };
    only.origin.only = Some(wanted.iter().map(|name| (*name).to_owned()).collect());
    Ok(only)
}

fn unknown(config: &Config, name: &str) -> UnknownServer {
    UnknownServer {
        name: name.to_owned(),
        disabled: config.disabled.get(name).cloned(),
        similar: super::unknown::similar(name, config.servers.keys().map(String::as_str))
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

/// How many cycles are reported; more of them would tell nobody anything.
const MAX_CYCLES: usize = 16;

/// The cycles among `edges`, each as the names along it.
pub(super) fn cycles<'a>(edges: &IndexMap<&'a str, Vec<&'a str>>) -> Vec<Vec<&'a str>> {
    let mut done: HashSet<&str> = HashSet::new();
    let mut found = Vec::new();
    for start in edges.keys() {
        walk(edges, start, &mut done, &mut found);
    }
    found
}

/// Follows the edges depth first without recursion: a chain may be as long as the file allows.
fn walk<'a>(
    edges: &IndexMap<&'a str, Vec<&'a str>>,
    start: &'a str,
    done: &mut HashSet<&'a str>,
    found: &mut Vec<Vec<&'a str>>,
) {
    let mut path: Vec<(&str, usize)> = vec![(start, 0)];
    let mut place: HashMap<&str, usize> = HashMap::from([(start, 0)]);
    while let Some((name, next)) = path.last_mut() {
        let (name, edge) = (*name, *next);
        *next += 1;
        let target = match edges.get(name).and_then(|targets| targets.get(edge)) {
            Some(target) if !done.contains(name) => *target,
            _ => {
                done.insert(name);
                place.remove(name);
                path.pop();
                continue;
            }
        };
        if let Some(from) = place.get(target) {
            if found.len() < MAX_CYCLES {
                found.push(path[*from..].iter().map(|(name, _)| *name).collect());
            }
        } else if edges.contains_key(target) && !done.contains(target) {
            place.insert(target, path.len());
            path.push((target, 0));
        }
    }
}
