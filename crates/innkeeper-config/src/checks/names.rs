//! Checks server names for valid characters and uniqueness.

use std::collections::HashMap;

use crate::checks::parsed_source::ParsedSource;
use crate::diagnostic::Position;
use crate::name::server_name_problem;

/// The hint for an invalid server name.
pub(crate) const NAME_HINT: &str = "use 1 to 128 visible characters";

/// Reports invalid names; later checks skip their entries.
pub(crate) fn check(sources: &mut [ParsedSource<'_>]) {
    let mut seen: HashMap<String, (String, Position)> = HashMap::new();
    for parsed in sources {
        for (index, entry) in parsed.document.servers.iter_mut().enumerate() {
            let position = parsed.report.source().position(entry.at);
            if let Some(message) = rejection_reason(&entry.name) {
                entry.has_valid_name = false;
                parsed.report.set_entry(Some(index));
                parsed.report.error(entry.at, &entry.path, message);
                parsed.report.hint(NAME_HINT);
                parsed.report.set_entry(None);
                continue;
            }
            // Model providers fold names, so `FS` and `fs` would collide there.
            let folded = entry.name.to_ascii_lowercase();
            match seen.get(&folded) {
                None => {
                    seen.insert(folded, (entry.name.clone(), position));
                }
                Some((name, first)) => {
                    entry.has_valid_name = false;
                    let message = if *name == entry.name {
                        format!("duplicate server name, first at {first}")
                    } else {
                        format!("differs from `{name}` at {first} only in case")
                    };
                    parsed.report.error(entry.at, &entry.path, message);
                }
            }
        }
    }
}

/// Returns the reason why a server name is invalid.
pub(crate) fn rejection_reason(name: &str) -> Option<String> {
    server_name_problem(name).map(|problem| format!("the server name {problem}"))
}
