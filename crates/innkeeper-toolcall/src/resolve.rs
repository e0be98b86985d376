//! The offered tool that a model means by a name.

#[cfg(test)]
mod tests;

use crate::repair::{NameChange, Repair};
use crate::tool::{Tool, Tools};

/// What models put before the name of every tool, because they were trained on lists that have it.
const PREFIXES: &[&str] = &["functions.", "tools.", "default_api.", "mcp__"];

/// What may stand between the words of a name.
const SEPARATORS: &[char] = &['.', '_', '-', '/'];

/// The longest name compared with others, in bytes; comparing takes the square of it.
const COMPARED: usize = 128;

/// How many tools a name is compared with at most, those offered first; takes a few milliseconds.
const OTHERS: usize = 1_000;

/// The most suggestions; more would not help a model.
const SUGGESTIONS: usize = 3;

/// How alike a suggestion is at least, from 0 to 1.
const ALIKE: f64 = 0.6;

/// A tool that was found by its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved<'t> {
    /// The offered tool.
    pub tool: &'t Tool,
    /// What had to be overlooked, if it is not the tool's exact name.
    pub repair: Option<Repair>,
}

/// Finds the tool that `said` names; `None` if there is none, or more than one.
///
/// In this order: the exact name; the same in another case; the name without `functions.`,
/// `tools.`, `default_api.` or `mcp__` before it; a name of which `said` is all that follows the
/// server and a `.`; the same words with other separators. Each has to hold for one tool alone: the
/// first that holds for several ends the search. Names that are only alike are never taken, see
/// [`suggest`].
pub fn resolve<'t>(tools: &'t Tools, said: &str) -> Option<Resolved<'t>> {
    if said.is_empty() {
        return None;
    }
    if let Some(tool) = tools.get(said) {
        return Some(Resolved { tool, repair: None });
    }
    let (tool, change) = search(tools, said)?;
    let repair = Repair::Name { said: said.to_owned(), taken: tool.name.clone(), change };
    Some(Resolved { tool, repair: Some(repair) })
}

/// Up to three names of offered tools that are like `said`, the likest first.
pub fn suggest(tools: &Tools, said: &str) -> Vec<String> {
    if said.is_empty() || said.len() > COMPARED {
        return Vec::new();
    }
    let said = words(bare(said));
    let mut alike: Vec<(f64, &str)> = tools
        .iter()
        .take(OTHERS)
        .map(|tool| tool.name.as_str())
        .filter(|name| name.len() <= COMPARED)
        .map(|name| (likeness(&said, name), name))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    alike.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    alike.into_iter().take(SUGGESTIONS).map(|(_, name)| name.to_owned()).collect()
}

/// What the name of some tools has in common with others.
enum Found<'t> {
    None,
    One(&'t Tool),
    Several,
}

fn search<'t>(tools: &'t Tools, said: &str) -> Option<(&'t Tool, NameChange)> {
    let lower = said.to_lowercase();
    let bare = bare(said);
    let bare_lower = bare.to_lowercase();
    let suffix = format!(".{bare}");
    let normal = words(bare);
    type Rung<'r> = (NameChange, &'r dyn Fn(&str) -> bool);
    let rungs: [Rung<'_>; 5] = [
        (NameChange::Case, &|name| name.to_lowercase() == lower),
        (NameChange::Prefix, &|name| name == bare),
        (NameChange::Prefix, &|name| name.to_lowercase() == bare_lower),
        (NameChange::Server, &|name| !bare.is_empty() && name.ends_with(&suffix)),
        (NameChange::Separators, &|name| !normal.is_empty() && words(name) == normal),
    ];
    for (change, holds) in rungs {
        match only(tools, holds) {
            Found::One(tool) => return Some((tool, change)),
            Found::Several => return None,
            Found::None => {}
        }
    }
    None
}

fn only(tools: &Tools, holds: impl Fn(&str) -> bool) -> Found<'_> {
    let mut all = tools.iter().filter(|tool| holds(&tool.name));
    match (all.next(), all.next()) {
        (None, _) => Found::None,
        (Some(tool), None) => Found::One(tool),
        (Some(_), Some(_)) => Found::Several,
    }
}

/// The name without one of the known prefixes.
fn bare(said: &str) -> &str {
    PREFIXES.iter().find_map(|prefix| said.strip_prefix(prefix)).unwrap_or(said)
}

/// The name in lower case, with one `_` for any separators in a row.
fn words(name: &str) -> String {
    let parts = name.split(SEPARATORS).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

/// How alike a name is, with its server or without.
fn likeness(said: &str, name: &str) -> f64 {
    let whole = strsim::normalized_damerau_levenshtein(said, &words(name));
    let tool = name
        .split_once('.')
        .map_or(0.0, |(_, tool)| strsim::normalized_damerau_levenshtein(said, &words(tool)));
    whole.max(tool)
}
