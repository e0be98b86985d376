//! The settings of the host.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::checks::parsed_source::ParsedSource;
use crate::checks::shared_settings::{check_sizes, guard, seconds};
use crate::diagnostic::Position;
use crate::form::{raw, schema, unknown_keys, validate};
use crate::settings::host::HostConfig;
use crate::text::key_location::{key_segment, locate};

/// Merges the host settings of all files; only one file may set a key.
pub(crate) fn host(sources: &mut [ParsedSource<'_>]) -> HostConfig {
    let mut merged = Map::new();
    let mut set_at: HashMap<String, Position> = HashMap::new();
    for parsed in sources.iter_mut() {
        let Some(node) = &mut parsed.document.host else {
            continue;
        };
        unknown_keys::remove_unknown_keys(node, &schema::HOST_SCHEMA, "host", &mut parsed.report);
        let value = validate::host(node, "host", &mut parsed.report);
        check_sizes(node, "host", &mut parsed.report);
        for member in node.members() {
            let position = parsed.report.source().position(member.at);
            match set_at.get(&member.key) {
                Some(first) => {
                    let location = locate(node, "host", &[key_segment(&member.key)]);
                    parsed.report.error(member.at, location.key, format!("already set at {first}"));
                }
                None => {
                    set_at.insert(member.key.clone(), position);
                }
            }
        }
        if let Value::Object(map) = value {
            merged.extend(map);
        }
    }
    let typed = serde_json::from_value(Value::Object(merged)).unwrap_or_else(|_| {
        if let Some(parsed) = sources.first_mut() {
            parsed.report.error(None, "host", "does not match the schema");
        }
        raw::Host::default()
    });
    host_config(&typed)
}

fn host_config(typed: &raw::Host) -> HostConfig {
    let defaults = HostConfig::default();
    HostConfig {
        start_timeout: seconds(typed.start_timeout).unwrap_or(defaults.start_timeout),
        install_timeout: seconds(typed.install_timeout).unwrap_or(defaults.install_timeout),
        concurrent_starts: typed
            .concurrent_starts
            .map_or(defaults.concurrent_starts, |count| count as usize),
        allow_bare_names: typed.allow_bare_names.unwrap_or(defaults.allow_bare_names),
        lifecycle: defaults.lifecycle.overridden(&typed.shared),
        calls: defaults.calls.overridden(&typed.shared),
        confinement: defaults.confinement.overridden(typed.inherit_env, &typed.shared),
        guard: guard(defaults.guard, typed.shared.guard),
    }
}
