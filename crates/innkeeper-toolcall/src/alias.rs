//! Provider names of tools, and the table that maps them back.
//!
//! Most providers do not accept a canonical name `{server}.{tool}`. The alias is the same name with
//! `_` for each forbidden character. The alias gets a suffix, which is a hash of the canonical
//! name, if the alias is too long, if the name contains letters that the alias cannot represent, or
//! if another tool has the same alias when case is ignored. Therefore the order of the tools does
//! not matter, adding or removing a tool changes only colliding names, and a name that is already a
//! valid alias stays unchanged unless another name differs only in case. Aliases are never parsed;
//! the way back is a table lookup.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sha2::{Digest, Sha256};

/// A provider's rules for names: length, characters, first character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameRules {
    /// Maximum length in characters, which equals bytes because all characters are ASCII.
    max_len: usize,
    /// Allowed characters besides letters, digits and `_`.
    extra_chars: &'static str,
    /// Whether the first character may be a digit or `-`.
    allows_any_first: bool,
    /// Whether names that differ only in case collide.
    ignores_case: bool,
}

impl NameRules {
    /// Rules for function names at OpenAI: 64 characters.
    pub const OPENAI: Self =
        Self { max_len: 64, extra_chars: "_-", allows_any_first: true, ignores_case: true };
    /// Rules for tool names at Anthropic. Newer models accept 128 characters, but proxies may not.
    pub const ANTHROPIC: Self = Self::OPENAI;
    /// Rules for the keys of `properties` at Anthropic, which are case-sensitive.
    pub const ANTHROPIC_PARAMETER: Self =
        Self { max_len: 64, extra_chars: "_.-", allows_any_first: true, ignores_case: false };
    /// Rules for function names at Gemini: 63 characters, which every version accepts; the first
    /// character is a letter or `_`.
    pub const GEMINI: Self = Self { max_len: 63, allows_any_first: false, ..Self::OPENAI };
    /// Rules for function names at Ollama, which uses OpenAI's API.
    pub const OLLAMA: Self = Self::OPENAI;
    /// Rules for parameter names at Gemini, which are case-sensitive.
    pub const GEMINI_PARAMETER: Self =
        Self { max_len: 64, extra_chars: "_", allows_any_first: false, ignores_case: false };

    /// Whether the rules allow this name unchanged.
    pub fn allows(&self, name: &str) -> bool {
        !name.is_empty()
            && name.len() <= self.max_len
            && name.chars().all(|character| self.allows_char(character))
            && name.chars().next().is_some_and(|character| self.allows_first_char(character))
    }

    fn allows_char(self, character: char) -> bool {
        character.is_ascii_alphanumeric() || self.extra_chars.contains(character)
    }

    fn allows_first_char(self, character: char) -> bool {
        self.allows_any_first || character.is_ascii_alphabetic() || character == '_'
    }

    /// Replaces forbidden characters; the result may be too long.
    fn sanitize(self, name: &str) -> String {
        let spelled: String = name
            .chars()
            .map(|character| if self.allows_char(character) { character } else { '_' })
            .collect();
        match spelled.chars().next() {
            Some(first) if self.allows_first_char(first) => spelled,
            Some(_) | None => format!("_{spelled}"),
        }
    }

    /// Whether the sanitized name is ambiguous without a suffix.
    fn is_lossy(self, name: &str) -> bool {
        name.is_empty() || !name.is_ascii() || self.sanitize(name).len() > self.max_len
    }

    /// Truncates the sanitized name so that the suffix fits.
    fn with_suffix(self, name: &str, suffix: &str) -> String {
        let mut alias = self.sanitize(name);
        alias.truncate(self.max_len.saturating_sub(suffix.len() + 1));
        format!("{alias}_{suffix}")
    }

    /// Key that is equal for colliding aliases.
    fn collision_key(self, alias: &str) -> String {
        if self.ignores_case { alias.to_ascii_lowercase() } else { alias.to_owned() }
    }
}

/// Numbers of hexadecimal digits of a suffix: six, and more if the shorter suffix is taken.
const SUFFIX_HEX_DIGITS: &[usize] = &[6, 12, 24, 48];

/// Canonical names and aliases of a set of tools, with lookup in both directions.
#[derive(Debug, Clone)]
pub struct Aliases {
    rules: NameRules,
    by_canonical: BTreeMap<String, String>,
    by_alias: HashMap<String, String>,
    used_keys: BTreeSet<String>,
}

impl Aliases {
    /// Assigns an alias to each name. Duplicate names count once.
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
            used_keys: BTreeSet::new(),
        };
        let (ready, others): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| rules.allows(name));
        let (mut unassigned, clear): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|name| rules.is_lossy(name));
        unassigned.extend(all.assign_unique(ready, str::to_owned));
        unassigned.extend(all.assign_unique(clear, |name| rules.sanitize(name)));
        for digits in SUFFIX_HEX_DIGITS {
            unassigned = all.assign_unique(unassigned, |name| {
                rules.with_suffix(name, &sha256_hex(name)[..*digits])
            });
        }
        all.assign_numbered(unassigned);
        all
    }

    /// Returns the alias of a canonical name.
    pub fn alias(&self, canonical: &str) -> Option<&str> {
        self.by_canonical.get(canonical).map(String::as_str)
    }

    /// Returns the canonical name of an alias.
    pub fn canonical(&self, alias: &str) -> Option<&str> {
        self.by_alias.get(alias).map(String::as_str)
    }

    /// Iterates over canonical names with their aliases, in the order of the canonical names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_canonical.iter().map(|(name, alias)| (name.as_str(), alias.as_str()))
    }

    /// Assigns the claimed alias to each name whose alias is free and claimed once. Returns the
    /// other names.
    fn assign_unique(&mut self, names: Vec<String>, claim: impl Fn(&str) -> String) -> Vec<String> {
        let claims: Vec<_> = names
            .into_iter()
            .map(|name| {
                let alias = claim(&name);
                (name, self.rules.collision_key(&alias), alias)
            })
            .collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for (_, key, _) in &claims {
            *counts.entry(key).or_default() += 1;
        }
        let is_unique: Vec<bool> = claims
            .iter()
            .map(|(_, key, _)| {
                counts.get(key.as_str()) == Some(&1) && !self.used_keys.contains(key)
            })
            .collect();
        let mut unassigned = Vec::new();
        for ((name, _, alias), is_unique) in claims.into_iter().zip(is_unique) {
            if is_unique {
                self.insert(name, alias);
            } else {
                unassigned.push(name);
            }
        }
        unassigned
    }

    /// Assigns numbered aliases to the remaining names. Only crafted names reach this step.
    fn assign_numbered(&mut self, mut names: Vec<String>) {
        names.sort();
        let mut number = 0_usize;
        for name in names {
            let alias = loop {
                number += 1;
                let alias = self.rules.with_suffix(&name, &number.to_string());
                if !self.used_keys.contains(&self.rules.collision_key(&alias)) {
                    break alias;
                }
            };
            self.insert(name, alias);
        }
    }

    fn insert(&mut self, canonical: String, alias: String) {
        self.used_keys.insert(self.rules.collision_key(&alias));
        self.by_alias.insert(alias.clone(), canonical.clone());
        self.by_canonical.insert(canonical, alias);
    }
}

/// Hexadecimal SHA-256 of the name.
fn sha256_hex(name: &str) -> String {
    format!("{:x}", Sha256::digest(name.as_bytes()))
}

#[cfg(test)]
mod tests;
