//! The rules of one grammar: names, literals and shared rules.

use std::collections::{HashMap, HashSet};

use super::super::MAX_REPEATS;

/// Maximum number of characters of a rule name before its number, for readable grammars.
const MAX_NAME_CHARS: usize = 48;

/// Rules that several schemas share; added to the grammar on first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SharedRule {
    Space,
    Char,
    KeyChar,
    Text,
    Integer,
    Number,
    Boolean,
    Value,
}

impl SharedRule {
    const ALL: [Self; 8] = [
        Self::Space,
        Self::Char,
        Self::KeyChar,
        Self::Text,
        Self::Integer,
        Self::Number,
        Self::Boolean,
        Self::Value,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Space => "space",
            Self::Char => "char",
            Self::KeyChar => "key-char",
            Self::Text => "text",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Value => "value",
        }
    }

    /// Returns the rule and the shared rules that it uses. Numbers have at most 16 digits and an
    /// exponent of at most two, and no escape is half of a surrogate pair, so that every parser
    /// accepts the output.
    fn body(self, text: &str) -> (String, &'static [Self]) {
        match self {
            Self::Space => (r#"" "?"#.to_owned(), &[]),
            Self::Char => (
                r#"[^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" ([0-9a-cA-CefEF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2}))"#.to_owned(),
                &[],
            ),
            Self::KeyChar => (r#"[^"\\\x7F\x00-\x1F]"#.to_owned(), &[]),
            Self::Text => (format!(r#""\"" char{text} "\"""#), &[Self::Char]),
            Self::Integer => (r#""0" | "-"? [1-9] [0-9]{0,15}"#.to_owned(), &[]),
            Self::Number => (
                r#""-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?"#
                    .to_owned(),
                &[],
            ),
            Self::Boolean => (r#""true" | "false""#.to_owned(), &[]),
            Self::Value => (
                r#""null" | boolean | number | text | "[" (value ("," space value)*)? "]" | "{" (text ":" space value ("," space text ":" space value)*)? "}""#.to_owned(),
                &[Self::Boolean, Self::Number, Self::Text, Self::Space],
            ),
        }
    }
}

/// The rules written so far.
#[derive(Debug)]
pub(super) struct RuleSet {
    list: Vec<(String, String)>,
    names: HashSet<String>,
    shared: HashSet<SharedRule>,
    name_counts: HashMap<String, usize>,
    /// Repetition of a character in a string without `maxLength`.
    string_repetition: String,
}

impl RuleSet {
    /// Creates an empty set; strings without `maxLength` get this limit.
    pub(super) fn new(string_limit: Option<u64>) -> Self {
        let string_repetition = string_limit
            .map_or("*".to_owned(), |limit| format!("{{0,{}}}", limit.min(MAX_REPEATS)));
        let mut names: HashSet<String> = SharedRule::ALL.map(|rule| rule.name().to_owned()).into();
        names.insert("root".to_owned());
        Self {
            list: Vec::new(),
            names,
            shared: HashSet::new(),
            name_counts: HashMap::new(),
            string_repetition,
        }
    }

    /// Adds a shared rule and returns its name.
    pub(super) fn use_shared(&mut self, rule: SharedRule) -> String {
        if self.shared.insert(rule) {
            let (body, needs) = rule.body(&self.string_repetition.clone());
            self.list.push((rule.name().to_owned(), body));
            for need in needs {
                self.use_shared(*need);
            }
        }
        rule.name().to_owned()
    }

    /// Returns a new rule name of letters, digits and hyphens, based on `base_name`.
    pub(super) fn unique_name(&mut self, base_name: &str) -> String {
        let base: String = base_name
            .chars()
            .take(MAX_NAME_CHARS)
            .map(|character| {
                if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '-' }
            })
            .collect();
        let base = match base.trim_matches('-') {
            "" => "rule".to_owned(),
            base => base.to_owned(),
        };
        let count = self.name_counts.entry(base.clone()).or_default();
        loop {
            *count += 1;
            let name = if *count == 1 { base.clone() } else { format!("{base}-{count}") };
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }

    pub(super) fn define(&mut self, name: String, body: String) {
        self.list.push((name, body));
    }

    /// Adds a separate rule for a repeated expression, because llama.cpp multiplies bracketed
    /// expressions.
    pub(super) fn add_rule(&mut self, base_name: &str, body: String) -> String {
        let name = self.unique_name(base_name);
        self.define(name.clone(), body);
        name
    }

    /// Returns the text of the grammar; the first rule is `root`.
    pub(super) fn render(&self, root: &str) -> String {
        let mut text = format!("root ::= {root}\n");
        for (name, body) in &self.list {
            text.push_str(name);
            text.push_str(" ::= ");
            text.push_str(body);
            text.push('\n');
        }
        text
    }
}

/// Returns a literal that matches the text exactly.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other => out.push_str(&escape_unprintable(other)),
        }
    }
    out.push('"');
    out
}

pub(super) fn escape_in_class(character: char) -> String {
    if character.is_ascii_alphanumeric() || !character.is_ascii() {
        escape_unprintable(character)
    } else {
        format!("\\x{:02X}", u32::from(character))
    }
}

fn escape_unprintable(character: char) -> String {
    match u32::from(character) {
        code @ (..=0x1F | 0x7F) => format!("\\x{code:02X}"),
        code @ (0x80..=0xA0 | 0x2028 | 0x2029 | 0xFEFF) => format!("\\u{code:04X}"),
        _ => character.to_string(),
    }
}

/// Returns a repetition of `least` to `max`. The flag reports whether the repetition is inexact.
pub(super) fn repetition(least: u64, max: Option<u64>) -> (String, bool) {
    let min = least.min(MAX_REPEATS);
    match max {
        Some(max) if max <= MAX_REPEATS => (format!("{{{min},{}}}", max.max(min)), least > max),
        Some(_) if min == 0 => ("*".to_owned(), true),
        None if min == 0 => ("*".to_owned(), false),
        unbounded => (format!("{{{min},}}"), unbounded.is_some() || least > MAX_REPEATS),
    }
}
