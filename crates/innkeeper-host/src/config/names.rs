//! Names of servers: what they may be made of, and that no two are the same.

use std::collections::HashMap;

use super::load::Part;
use super::problem::Position;
use crate::name::NAME_LIMIT;

/// Tells about names that cannot be used; their entries are left out of what follows.
pub(super) fn check(parts: &mut [Part<'_>]) {
    let mut seen: HashMap<String, (String, Position)> = HashMap::new();
    for part in parts {
        for entry in &mut part.document.servers {
            let position = part.report.source().position(entry.at);
            if let Some(message) = refuse(&entry.name) {
                entry.usable = false;
                part.report.error(entry.at, &entry.path, message);
                part.report.hint("use letters, digits, `_`, `-` and `.`");
                continue;
            }
            // Models' providers fold names, so `FS` and `fs` would meet again there.
            let folded = entry.name.to_ascii_lowercase();
            match seen.get(&folded) {
                None => {
                    seen.insert(folded, (entry.name.clone(), position));
                }
                Some((name, first)) => {
                    entry.usable = false;
                    let message = if *name == entry.name {
                        format!("duplicate server name, first at {first}")
                    } else {
                        format!("differs from `{name}` at {first} in case only")
                    };
                    part.report.error(entry.at, &entry.path, message);
                }
            }
        }
    }
}

fn refuse(name: &str) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.is_empty() {
        Some("the server's name is empty".to_owned())
    } else if name.chars().count() > NAME_LIMIT {
        Some(format!("the server's name is longer than {NAME_LIMIT} characters"))
    } else if !name.bytes().all(plain) {
        Some("the server's name has a character that names cannot have".to_owned())
    } else {
        None
    }
}
