//! Warnings about new text that a model reads.

use std::collections::{HashMap, HashSet};

use innkeeper_config::name;

use super::Lock;
use crate::text::{ConfusableNames, hidden_characters};

/// The names of all current tools, to find mentions of them.
#[derive(Debug, Default)]
pub(super) struct ToolNames<'l> {
    /// Names that are not ordinary words, with their servers.
    distinctive: HashMap<String, HashSet<&'l str>>,
    confusables: ConfusableNames<'l>,
}

impl<'l> ToolNames<'l> {
    pub(super) fn from_lock(lock: &'l Lock) -> Self {
        let mut names = Self::default();
        for (server, pinned) in &lock.servers {
            for tool in pinned.tools.keys() {
                let public_name = Some(name::public_name(server, tool).into());
                let plain_name = is_distinctive(tool).then(|| tool.clone());
                for name in public_name.into_iter().chain(plain_name) {
                    names.distinctive.entry(name).or_default().insert(server);
                }
                names.confusables.add(server, tool);
            }
        }
        names
    }

    /// Returns the tool of another server with a similar but not equal name.
    pub(super) fn find_look_alike(&self, server: &str, tool: &str) -> Option<Box<str>> {
        self.confusables.find(server, tool).map(|(server, tool)| name::public_name(server, tool))
    }

    fn belongs_to_another(&self, server: &str, word: &str) -> bool {
        self.distinctive.get(word).is_some_and(|owners| !owners.contains(server))
    }
}

/// Returns whether a name is not an ordinary word, so that prose does not contain it by chance.
fn is_distinctive(tool: &str) -> bool {
    tool.chars().skip(1).any(|c| !c.is_alphabetic() || c.is_uppercase())
}

/// Returns a warning about the new text that did not apply to the old text.
pub(super) fn new_warning(
    names: &ToolNames<'_>,
    server: &str,
    before: &str,
    after: &str,
) -> Option<&'static str> {
    let hides = hidden_characters(after);
    if !hides.is_empty() && hides != hidden_characters(before) {
        return Some("contains hidden characters");
    }
    let old: HashSet<&str> = before.split_whitespace().collect();
    if after.split_whitespace().any(|word| word.contains("://") && !old.contains(word)) {
        return Some("contains an address");
    }
    let old: HashSet<&str> = name_tokens(before).collect();
    if name_tokens(after).any(|word| !old.contains(word) && names.belongs_to_another(server, word))
    {
        return Some("names a tool of another server");
    }
    None
}

/// Returns the words of a text, spelled as names; a final period is not part of a name.
fn name_tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && !"_-./".contains(c))
        .map(|word| word.trim_matches('.'))
        .filter(|word| !word.is_empty())
}

/// Returns whether two texts differ only in white space.
pub(super) fn equal_ignoring_whitespace(before: &str, after: &str) -> bool {
    before.split_whitespace().eq(after.split_whitespace())
}
