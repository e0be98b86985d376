//! The dependency graph: start waves, selections, cycles.

use std::collections::HashSet;
use std::fmt;

use crate::config::Config;
use crate::diagnostic::Position;
use crate::settings::shared::Share;

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

impl Config {
    /// Returns the configuration reduced to these servers and their dependencies, which can include
    /// servers in [`Config::invalid`]. The warnings about the other servers are removed.
    ///
    /// # Errors
    ///
    /// Returns the first name that no enabled server has.
    pub fn select(&self, servers: &[&str]) -> Result<Self, UnknownServer> {
        select(self, servers)
    }

    /// Returns the configuration reduced to the servers with this sharing policy. Dependencies on
    /// other servers are removed: these servers run in another host. The servers in
    /// [`Config::invalid`] stay with [`Share::Process`].
    #[must_use]
    pub fn shared_by(&self, share: Share) -> Self {
        shared_by(self, share)
    }

    /// Returns the servers in start order: a wave depends only on the waves before it.
    ///
    /// Servers of one wave are in file order and can start concurrently.
    pub fn waves(&self) -> Vec<Vec<&str>> {
        waves(self)
    }
}

pub(crate) fn select(config: &Config, names: &[&str]) -> Result<Config, UnknownServer> {
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

pub(crate) fn shared_by(config: &Config, share: Share) -> Config {
    let mut only = config.clone();
    only.servers.retain(|_, server| server.lifecycle.share == share);
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
        similar: crate::form::unknown_keys::similar(
            name,
            config.servers.keys().chain(config.invalid.keys()).map(String::as_str),
        )
        .map(str::to_owned),
    }
}

pub(crate) fn waves(config: &Config) -> Vec<Vec<&str>> {
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
    waves
        .into_iter()
        .map(|wave| {
            wave.into_iter()
                .filter_map(|index| config.servers.get_index(index).map(|(name, _)| name.as_str()))
                .collect()
        })
        .collect()
}
