//! The rules of one grammar: their names, the way literals are written, the parts all share.

use std::collections::{HashMap, HashSet};

use super::super::REPEATS;

/// The longest rule name before its number, for readable grammars.
const NAME: usize = 48;

/// Rules that several schemas share, each there when it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Shared {
    Space,
    Char,
    KeyChar,
    Text,
    Integer,
    Number,
    Boolean,
    Value,
}

impl Shared {
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

    /// Its rule and the shared rules in it. Numbers have at most 16 digits and two of an exponent,
    /// and no escape stands for half a character, so that every parser takes them.
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
pub(super) struct Rules {
    list: Vec<(String, String)>,
    names: HashSet<String>,
    shared: HashSet<Shared>,
    counts: HashMap<String, usize>,
    /// How often a character of a string without own limits may be repeated.
    text: String,
}

impl Rules {
    /// No rules yet; strings without a limit of their own get this one.
    pub(super) fn new(string_limit: Option<u64>) -> Self {
        let text =
            string_limit.map_or("*".to_owned(), |limit| format!("{{0,{}}}", limit.min(REPEATS)));
        let mut names: HashSet<String> = Shared::ALL.map(|it| it.name().to_owned()).into();
        names.insert("root".to_owned());
        Self { list: Vec::new(), names, shared: HashSet::new(), counts: HashMap::new(), text }
    }

    /// A shared rule's name.
    pub(super) fn shared(&mut self, part: Shared) -> String {
        if self.shared.insert(part) {
            let (body, needs) = part.body(&self.text.clone());
            self.list.push((part.name().to_owned(), body));
            for need in needs {
                self.shared(*need);
            }
        }
        part.name().to_owned()
    }

    /// A new rule's name, made of letters, digits and hyphens, near to what is wished.
    pub(super) fn name(&mut self, wish: &str) -> String {
        let safe =
            |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' };
        let base: String = wish.chars().take(NAME).map(safe).collect();
        let base = match base.trim_matches('-') {
            "" => "rule".to_owned(),
            base => base.to_owned(),
        };
        let count = self.counts.entry(base.clone()).or_default();
        loop {
            *count += 1;
            let name = if *count == 1 { base.clone() } else { format!("{base}-{count}") };
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }

    /// Writes the rule of a name.
    pub(super) fn define(&mut self, name: String, body: String) {
        self.list.push((name, body));
    }

    /// A rule of its own for what is repeated, since llama.cpp multiplies what stands in brackets.
    pub(super) fn rule(&mut self, wish: &str, body: String) -> String {
        let name = self.name(wish);
        self.define(name.clone(), body);
        name
    }

    /// The grammar's text, the rule `root` first.
    pub(super) fn text(&self, root: &str) -> String {
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

/// Text to be matched as it is.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other => out.push_str(&plain(other)),
        }
    }
    out.push('"');
    out
}

/// One character inside square brackets.
pub(super) fn in_class(character: char) -> String {
    if character.is_ascii_alphanumeric() || !character.is_ascii() {
        plain(character)
    } else {
        format!("\\x{:02X}", u32::from(character))
    }
}

/// Printable characters as they are, others by number.
fn plain(character: char) -> String {
    match u32::from(character) {
        code @ (..=0x1F | 0x7F) => format!("\\x{code:02X}"),
        code @ (0x80..=0xA0 | 0x2028 | 0x2029 | 0xFEFF) => format!("\\u{code:04X}"),
        _ => character.to_string(),
    }
}

/// From `least` to `most` repetitions; the flag says whether that is not quite what was asked.
pub(super) fn repeat(least: u64, most: Option<u64>) -> (String, bool) {
    let kept = least.min(REPEATS);
    match most {
        Some(most) if most <= REPEATS => (format!("{{{kept},{}}}", most.max(kept)), least > most),
        Some(_) if kept == 0 => ("*".to_owned(), true),
        None if kept == 0 => ("*".to_owned(), false),
        over => (format!("{{{kept},}}"), over.is_some() || least > REPEATS),
    }
}
