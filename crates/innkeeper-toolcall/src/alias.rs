//! The names by which a provider knows the tools, with the way back by table.
//!
//! A canonical name `{server}.{tool}` is no name for most providers. Its alias is the same name with
//! `_` for each character that may not be there. It gets a suffix made from the canonical name alone
//! when it would be too long, when it has letters that an alias cannot show, or when another tool's
//! alias would be the same, upper and lower case being the same letter. So the order of the tools
//! says nothing, a tool that comes or goes moves only names that are the same as its own, and a name
//! that is an alias already stays as it is unless another one differs from it in case only.
//! No alias is ever taken apart.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sha2::{Digest, Sha256};

/// What a provider asks of a name: its length, its characters, how it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameRules {
    /// Characters, which are bytes as well: all of them are ASCII.
    longest: usize,
    /// What is allowed beside letters and digits. `_` is always there.
    marks: &'static str,
    /// Whether a digit or `-` may be in front.
    any_first: bool,
    /// Whether names that differ in case only are the same.
    ignores_case: bool,
}

impl NameRules {
    /// Function names at OpenAI: 64 characters.
    pub const OPENAI: Self = Self { longest: 64, marks: "_-", any_first: true, ignores_case: true };
    /// Tool names at Anthropic. Newer models take 128 characters, the servers between may not.
    pub const ANTHROPIC: Self = Self::OPENAI;
    /// Function names at Gemini: 63 characters, which every version has taken, a letter or `_` first.
    pub const GEMINI: Self = Self { longest: 63, any_first: false, ..Self::OPENAI };
    /// Function names at Ollama, which speaks in OpenAI's shapes.
    pub const OLLAMA: Self = Self::OPENAI;
    /// Names of parameters at Gemini, which tell `a` from `A`.
    pub const GEMINI_PARAMETER: Self =
        Self { longest: 64, marks: "_", any_first: false, ignores_case: false };

    /// Whether this is a name as it stands.
    pub fn allow(&self, name: &str) -> bool {
        !name.is_empty()
            && name.len() <= self.longest
            && name.chars().all(|it| self.has(it))
            && name.chars().next().is_some_and(|it| self.opens(it))
    }

    fn has(self, character: char) -> bool {
        character.is_ascii_alphanumeric() || self.marks.contains(character)
    }

    fn opens(self, character: char) -> bool {
        self.any_first || character.is_ascii_alphabetic() || character == '_'
    }

    /// The name in allowed characters, of any length.
    fn spell(self, name: &str) -> String {
        let spelled: String = name.chars().map(|it| if self.has(it) { it } else { '_' }).collect();
        match spelled.chars().next() {
            Some(first) if self.opens(first) => spelled,
            Some(_) | None => format!("_{spelled}"),
        }
    }

    /// Whether the spelled name says too little of the name to stand alone.
    fn blurs(self, name: &str) -> bool {
        name.is_empty() || !name.is_ascii() || self.spell(name).len() > self.longest
    }

    /// The spelled name, cut so that the suffix fits behind it.
    fn with_suffix(self, name: &str, suffix: &str) -> String {
        let mut alias = self.spell(name);
        alias.truncate(self.longest.saturating_sub(suffix.len() + 1));
        format!("{alias}_{suffix}")
    }

    /// What two aliases must not share.
    fn key(self, alias: &str) -> String {
        if self.ignores_case { alias.to_ascii_lowercase() } else { alias.to_owned() }
    }
}

/// Digits of a suffix, base 16: six as a rule, more where six are taken.
const SUFFIXES: &[usize] = &[6, 12, 24, 48];

/// Canonical names and aliases of one set of tools, each found by the other.
#[derive(Debug, Clone)]
pub struct Aliases {
    rules: NameRules,
    by_canonical: BTreeMap<String, String>,
    by_alias: HashMap<String, String>,
    taken: BTreeSet<String>,
}

impl Aliases {
    /// The aliases of these names. A name that is there twice counts once.
    pub fn new<I>(names: I, rules: NameRules) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let names: BTreeSet<String> = names.into_iter().map(Into::into).collect();
        let mut all = Self {
            rules,
            by_canonical: BTreeMap::new(),
            by_alias: HashMap::new(),
            taken: BTreeSet::new(),
        };
        let (ready, others): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| rules.allow(name));
        let (mut left, clear): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|name| rules.blurs(name));
        left.extend(all.settle(ready, str::to_owned));
        left.extend(all.settle(clear, |name| rules.spell(name)));
        for digits in SUFFIXES {
            left = all.settle(left, |name| rules.with_suffix(name, &hash(name)[..*digits]));
        }
        all.number(left);
        all
    }

    /// The alias of a canonical name.
    pub fn alias(&self, canonical: &str) -> Option<&str> {
        self.by_canonical.get(canonical).map(String::as_str)
    }

    /// The canonical name behind exactly this alias.
    pub fn canonical(&self, alias: &str) -> Option<&str> {
        self.by_alias.get(alias).map(String::as_str)
    }

    /// Each canonical name with its alias, in the order of the canonical names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_canonical.iter().map(|(name, alias)| (name.as_str(), alias.as_str()))
    }

    /// Gives each name what it claims, unless that is taken or another one claims it: those are left.
    fn settle(&mut self, names: Vec<String>, claim: impl Fn(&str) -> String) -> Vec<String> {
        let claims: Vec<_> = names
            .into_iter()
            .map(|name| {
                let alias = claim(&name);
                (name, self.rules.key(&alias), alias)
            })
            .collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for (_, key, _) in &claims {
            *counts.entry(key).or_default() += 1;
        }
        let alone: Vec<bool> = claims
            .iter()
            .map(|(_, key, _)| counts.get(key.as_str()) == Some(&1) && !self.taken.contains(key))
            .collect();
        let mut left = Vec::new();
        for ((name, _, alias), alone) in claims.into_iter().zip(alone) {
            if alone {
                self.put(name, alias);
            } else {
                left.push(name);
            }
        }
        left
    }

    /// Numbers what is left, which happens only to someone who makes names to get there.
    fn number(&mut self, mut names: Vec<String>) {
        names.sort();
        let mut number = 0_usize;
        for name in names {
            let alias = loop {
                number += 1;
                let alias = self.rules.with_suffix(&name, &number.to_string());
                if !self.taken.contains(&self.rules.key(&alias)) {
                    break alias;
                }
            };
            self.put(name, alias);
        }
    }

    fn put(&mut self, canonical: String, alias: String) {
        self.taken.insert(self.rules.key(&alias));
        self.by_alias.insert(alias.clone(), canonical.clone());
        self.by_canonical.insert(canonical, alias);
    }
}

/// SHA-256 of the name, base 16.
fn hash(name: &str) -> String {
    Sha256::digest(name.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
