//! Texts that a model reads: what about a new wording should make a person look.

use std::collections::{HashMap, HashSet};

use super::Lock;
use crate::name;
use crate::text::{Alike, hidden};

/// The names of all tools that were found, to recognise them in other places.
#[derive(Debug, Default)]
pub(super) struct Names<'l> {
    /// Names that stand out from prose, with their servers.
    striking: HashMap<String, HashSet<&'l str>>,
    alike: Alike<'l>,
}

impl<'l> Names<'l> {
    pub(super) fn of(lock: &'l Lock) -> Self {
        let mut names = Self::default();
        for (server, pinned) in &lock.servers {
            for tool in pinned.tools.keys() {
                let mut add = |name: String| {
                    names.striking.entry(name).or_default().insert(server);
                };
                add(name::public(server, tool).into());
                if stands_out(tool) {
                    add(tool.clone());
                }
                names.alike.add(server, tool);
            }
        }
        names
    }

    /// The tool of another server whose name looks like this one and is spelled otherwise.
    pub(super) fn look_alike(&self, server: &str, tool: &str) -> Option<Box<str>> {
        self.alike.find(server, tool).map(|(server, tool)| name::public(server, tool))
    }

    fn of_another(&self, server: &str, word: &str) -> bool {
        self.striking.get(word).is_some_and(|owners| !owners.contains(server))
    }
}

/// Whether a name is no plain word, so that prose does not have it by chance.
fn stands_out(tool: &str) -> bool {
    tool.chars().skip(1).any(|c| !c.is_alphabetic() || c.is_uppercase())
}

/// What is alarming in a text and was not in the one before.
pub(super) fn alarm(
    names: &Names<'_>,
    server: &str,
    before: &str,
    after: &str,
) -> Option<&'static str> {
    let hides = hidden(after);
    if !hides.is_empty() && hides != hidden(before) {
        return Some("has hidden characters");
    }
    let old: HashSet<&str> = before.split_whitespace().collect();
    if after.split_whitespace().any(|word| word.contains("://") && !old.contains(word)) {
        return Some("names an address");
    }
    let old: HashSet<&str> = words(before).collect();
    if words(after).any(|word| !old.contains(word) && names.of_another(server, word)) {
        return Some("names a tool of another server");
    }
    None
}

/// The words of a text as names are spelled; a full stop at the end is none of the name's.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let within = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    text.split(move |c| !within(c))
        .map(|word| word.trim_matches('.'))
        .filter(|word| !word.is_empty())
}

/// Whether two texts differ in white space only.
pub(super) fn same_words(before: &str, after: &str) -> bool {
    before.split_whitespace().eq(after.split_whitespace())
}
