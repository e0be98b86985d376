//! Verifies a server's listing against its pins on every read.

use innkeeper_config::ServerConfig;

use super::{Lock, MAX_DEFINITION_BYTES, PinPolicy, PinnedServer, PinnedText, canonical, launch};
use crate::catalog::{CatalogEntry, PinMismatch};
use crate::text::display_safe;

const REASON_CHANGED: &str = "changed since it was pinned; run `innkeeper lock --check`";
const REASON_TOO_LARGE: &str = "definition larger than 1 MiB cannot be pinned";
const REASON_NOT_PINNED: &str = "not pinned; run `innkeeper lock` to accept";

/// A lock with the action on mismatches.
#[derive(Clone, Debug)]
pub(crate) struct PinVerifier {
    pub(crate) lock: Lock,
    pub(crate) policy: PinPolicy,
}

impl PinVerifier {
    /// Removes withheld items from a catalog entry and records all mismatches.
    ///
    /// Tools and instructions are withheld, because a model acts on them. The owner added a server
    /// without pins to the configuration after the lock was created; such a server and all other
    /// mismatches are only reported.
    pub(crate) fn verify(&self, config: &ServerConfig, entry: &mut CatalogEntry) {
        let mut found_mismatches = Vec::new();
        let mut add = |item: String, reason, is_withheld| {
            found_mismatches.push(PinMismatch { subject: item, reason, withheld: is_withheld });
        };
        let Some(pinned) = self.lock.servers.get(&config.name) else {
            add("server".to_owned(), REASON_NOT_PINNED, false);
            entry.findings.mismatches = found_mismatches;
            return;
        };
        let refuses = self.policy == PinPolicy::Refuse;
        if launch::from_transport(&config.transport).0 != pinned.launch {
            add("launch".to_owned(), REASON_CHANGED, false);
        }
        let info =
            entry.introduction.server_info.as_deref().map(super::ServerIdentity::from_server_info);
        if info != pinned.server_info {
            add("serverInfo".to_owned(), REASON_CHANGED, false);
        }
        if let Some(text) = &entry.introduction.instructions
            && pinned.instructions != Some(PinnedText::new(text))
        {
            add("instructions".to_owned(), REASON_CHANGED, refuses);
            entry.introduction.is_withheld |= refuses;
        }
        let verdicts = mismatched_tools(pinned, entry);
        for (name, reason) in &verdicts {
            add(format!("tool `{}`", display_safe(name)), reason, refuses);
        }
        if refuses {
            entry.withhold(&verdicts.into_iter().collect());
        }
        entry.findings.mismatches = found_mismatches;
    }
}

/// Returns the listed tools that do not match their pins, in listing order.
fn mismatched_tools(pinned: &PinnedServer, entry: &CatalogEntry) -> Vec<(Box<str>, &'static str)> {
    entry
        .listing
        .tools
        .iter()
        .filter_map(|tool| {
            if tool.raw.get().len() > MAX_DEFINITION_BYTES {
                return Some((tool.view.name.as_str().into(), REASON_TOO_LARGE));
            }
            let reason = match pinned.tools.get(&tool.view.name) {
                None => REASON_NOT_PINNED,
                Some(pin) if pin.hash != canonical::hash_json(&tool.raw) => REASON_CHANGED,
                Some(_) => return None,
            };
            Some((tool.view.name.as_str().into(), reason))
        })
        .collect()
}
