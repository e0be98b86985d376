//! A lock at work: what a server offers held against its pins, whenever its lists are read.

use std::collections::HashMap;

use innkeeper_protocol::view::Tool;

use super::{DEFINITION_LIMIT, Lock, PinPolicy, PinnedServer, PinnedText, canonical, launch};
use crate::catalog::Shelf;
use crate::config::ServerConfig;
use crate::server::offer::Offered;
use crate::text::display_safe;

const CHANGED: &str = "changed since it was pinned; see `innkeeper lock --check`";
const TOO_LARGE: &str = "its definition is longer than 1 MiB and cannot be pinned";
const NOT_PINNED: &str = "it is not pinned; `innkeeper lock` accepts it";

/// A lock and what is done about what does not fit it.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) lock: Lock,
    pub(crate) policy: PinPolicy,
}

/// One thing that is not as it was pinned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mismatch {
    pub(crate) what: String,
    pub(crate) reason: &'static str,
    pub(crate) refused: bool,
}

impl Guard {
    /// Takes from a shelf what the lock refuses, and notes on it all that does not fit.
    ///
    /// Tools and instructions are refused: a model acts on them. A server without pins was put into
    /// the configuration by its owner after the lock was made; it and everything else is reported.
    pub(crate) fn inspect(&self, config: &ServerConfig, shelf: &mut Shelf) {
        let mut found = Vec::new();
        let mut tell = |what: String, reason, refused| {
            found.push(Mismatch { what, reason, refused });
        };
        let Some(pinned) = self.lock.servers.get(&config.name) else {
            tell("server".to_owned(), NOT_PINNED, false);
            shelf.mismatches = found;
            return;
        };
        let refuses = self.policy == PinPolicy::Refuse;
        if launch::of(&config.transport).0 != pinned.launch {
            tell("launch".to_owned(), CHANGED, false);
        }
        let info = shelf.server_info.as_deref().map(super::Identity::of);
        if info != pinned.server_info {
            tell("serverInfo".to_owned(), CHANGED, false);
        }
        if let Some(text) = &shelf.instructions
            && pinned.instructions != Some(PinnedText::of(text))
        {
            tell("instructions".to_owned(), CHANGED, refuses);
            shelf.instructions_refused |= refuses;
        }
        let verdicts = verdicts(pinned, shelf);
        for (name, reason) in &verdicts {
            tell(format!("tool `{}`", display_safe(name)), reason, refuses);
        }
        if refuses {
            shelf.withhold(&verdicts.into_iter().collect());
        }
        shelf.mismatches = found;
    }
}

/// The tools on offer that do not fit, in their order.
fn verdicts(pinned: &PinnedServer, shelf: &Shelf) -> Vec<(Box<str>, &'static str)> {
    let judge = |tool: &Offered<Tool>| {
        if tool.raw.get().len() > DEFINITION_LIMIT {
            return Some((tool.view.name.as_str().into(), TOO_LARGE));
        }
        let reason = match pinned.tools.get(&tool.view.name) {
            None => NOT_PINNED,
            Some(pin) if pin.hash != canonical::hash_of(&tool.raw) => CHANGED,
            Some(_) => return None,
        };
        Some((tool.view.name.as_str().into(), reason))
    };
    shelf.offer.tools.iter().filter_map(judge).collect()
}

/// Tools by name, with why each is refused.
pub(crate) type Refused = HashMap<Box<str>, &'static str>;
