//! Resolution of a written name to an available tool.

#[cfg(test)]
mod tests;

use crate::repair::{NameChange, Repair};
use crate::tool::{Tool, Tools};

/// Prefixes that models put before every tool name, because their training data contains such
/// names.
const KNOWN_PREFIXES: &[&str] = &[
    "functions.",
    "functions:",
    "function.",
    "function:",
    "tools.",
    "tools:",
    "tool.",
    "tool:",
    "default_api.",
    "default_api:",
    "mcp__",
];

/// Characters at the ends of a name that some models or servers add.
const STRAY_CHARS: &[char] = &['"', '\'', '`', ' ', '\t', '\r', '\n'];

/// Separators between the words of a name.
const SEPARATORS: &[char] = &['.', '_', '-', '/'];

/// Maximum bytes of a compared name; the time of a comparison is quadratic.
const MAX_COMPARED_BYTES: usize = 128;

/// Maximum number of compared tools, in listed order; takes a few milliseconds.
const MAX_COMPARED_TOOLS: usize = 1_000;

/// Maximum number of suggestions; more do not help a model.
const MAX_SUGGESTIONS: usize = 3;

/// Minimum similarity of a suggestion, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.6;

/// A tool that was found by name.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolMatch<'t> {
    /// The available tool.
    pub tool: &'t Tool,
    /// The difference between the names, if the match is not exact.
    pub repair: Option<Repair>,
}

/// Finds the tool with this name. Returns `None` if no tool matches, or if several tools match.
///
/// The rules, in order: the exact name; the name in a different case; the name without the prefix
/// `functions.`, `tools.`, `default_api.` or `mcp__`, also in the singular and with a colon; the part of a tool's name
/// after `SERVER.`; the same words with different separators; all of these without stray markup, such
/// as a closing tag behind the name. A rule must match exactly one tool: the first rule that matches
/// several tools ends the search. Similar names never match; see [`suggest`].
pub fn resolve<'t>(tools: &'t Tools, name: &str) -> Option<ToolMatch<'t>> {
    if name.is_empty() {
        return None;
    }
    if let Some(tool) = tools.get(name) {
        return Some(ToolMatch { tool, repair: None });
    }
    let (tool, change) = search(tools, name)?;
    let repair =
        Repair::Name { written_name: name.to_owned(), resolved_name: tool.name.clone(), change };
    Some(ToolMatch { tool, repair: Some(repair) })
}

/// Returns up to three names of available tools that are similar to `name`, most similar first.
pub fn suggest(tools: &Tools, name: &str) -> Vec<String> {
    suggest_names(tools.iter().map(|tool| tool.name.as_str()), name)
}

/// Works like [`suggest`], with the names of the available tools.
pub fn suggest_names<'n>(names: impl IntoIterator<Item = &'n str>, name: &str) -> Vec<String> {
    let name = strip_known_prefix(split_markup(name).0);
    if name.is_empty() || name.len() > MAX_COMPARED_BYTES {
        return Vec::new();
    }
    let normalized = normalize_name(name);
    let mut alike: Vec<(f64, &str)> = names
        .into_iter()
        .take(MAX_COMPARED_TOOLS)
        .filter(|name| name.len() <= MAX_COMPARED_BYTES)
        .map(|name| (similarity(&normalized, name), name))
        .filter(|(score, _)| *score >= MIN_SIMILARITY)
        .collect();
    alike.sort_by(|(left, _), (other, _)| other.total_cmp(left));
    alike.into_iter().take(MAX_SUGGESTIONS).map(|(_, name)| name.to_owned()).collect()
}

/// Result of matching one rule against all tools.
enum UniqueMatch<'t> {
    None,
    One(&'t Tool),
    Ambiguous,
}

fn search<'t>(tools: &'t Tools, written_name: &str) -> Option<(&'t Tool, NameChange)> {
    let (name, markup) = split_markup(written_name);
    if name.len() == written_name.len() {
        return search_name(tools, written_name);
    }
    // Markup that names another tool makes the call ambiguous.
    let names_other = tools.iter().any(|tool| {
        let own_name = tool.name.split_once('.').map_or(&*tool.name, |(_, own_name)| own_name);
        !own_name.is_empty() && markup.contains(own_name)
    });
    if name.is_empty() || names_other {
        return None;
    }
    let found = tools.get(name).or_else(|| search_name(tools, name).map(|(tool, _)| tool));
    found.map(|tool| (tool, NameChange::Markup))
}

fn search_name<'t>(tools: &'t Tools, written_name: &str) -> Option<(&'t Tool, NameChange)> {
    let lower = written_name.to_lowercase();
    let bare = strip_known_prefix(written_name);
    let bare_lower = bare.to_lowercase();
    let suffix = format!(".{bare}");
    let normal = normalize_name(bare);
    type MatchRule<'r> = (NameChange, &'r dyn Fn(&str) -> bool);
    let rungs: [MatchRule<'_>; 5] = [
        (NameChange::Case, &|name| name.to_lowercase() == lower),
        (NameChange::Prefix, &|name| name == bare),
        (NameChange::Prefix, &|name| name.to_lowercase() == bare_lower),
        (NameChange::Server, &|name| !bare.is_empty() && name.ends_with(&suffix)),
        (NameChange::Separators, &|name| !normal.is_empty() && normalize_name(name) == normal),
    ];
    for (change, holds) in rungs {
        match unique_match(tools, holds) {
            UniqueMatch::One(tool) => return Some((tool, change)),
            UniqueMatch::Ambiguous => return None,
            UniqueMatch::None => {}
        }
    }
    None
}

fn unique_match(tools: &Tools, holds: impl Fn(&str) -> bool) -> UniqueMatch<'_> {
    let mut all = tools.iter().filter(|tool| holds(&tool.name));
    match (all.next(), all.next()) {
        (None, _) => UniqueMatch::None,
        (Some(tool), None) => UniqueMatch::One(tool),
        (Some(_), Some(_)) => UniqueMatch::Ambiguous,
    }
}

/// Splits a written name into the name and the markup behind it: a tag, a channel token, empty
/// parentheses or the number of the call. No name of a tool contains `<`.
fn split_markup(written_name: &str) -> (&str, &str) {
    let end = written_name.find(['<', '(']).unwrap_or(written_name.len());
    let (name, markup) = written_name.split_at(end);
    let name = name.trim_matches(STRAY_CHARS);
    match name.rsplit_once(':') {
        Some((bare, number))
            if !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            (bare, markup)
        }
        Some(_) | None => (name, markup),
    }
}

/// Removes a known prefix from the name.
fn strip_known_prefix(name: &str) -> &str {
    KNOWN_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name)
}

/// Converts the name to lower case and each sequence of separators to `_`.
fn normalize_name(name: &str) -> String {
    let parts = name.split(SEPARATORS).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

/// Similarity of two names, with or without the server's name.
fn similarity(written_name: &str, name: &str) -> f64 {
    let full_score = strsim::normalized_damerau_levenshtein(written_name, &normalize_name(name));
    let tool = name.split_once('.').map_or(0.0, |(_, tool)| {
        strsim::normalized_damerau_levenshtein(written_name, &normalize_name(tool))
    });
    full_score.max(tool)
}
