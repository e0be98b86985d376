//! What models do wrong when they write a call, each by itself, and texts in which it was done.

use fastrand::Rng;
use innkeeper_toolcall::Tools;
use serde_json::{Value, json};

use super::form::{Body, Form, Style, Text, is_word, write};
use super::truth::{Entry, Said, Truth};

/// One thing done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slip {
    None,
    SingleQuotes,
    SmartQuotes,
    BareKeys,
    OthersWords,
    TrailingComma,
    MissingCommaOnLines,
    MissingComma,
    DoubledBraces,
    RawNewline,
    RawBackslash,
    FenceInside,
    Fence,
    Prose,
    Prefix,
    NameCase,
    TextForValue,
    KeyCase,
    MissingClosers,
    CutAtLength,
    CutUnsaid,
    BackslashThatEscapes,
}

/// An answer in which something was done wrong, and what it should have been.
pub(super) struct Case {
    pub(super) text: String,
    pub(super) clean: String,
    /// Whether the server says that the answer was cut.
    pub(super) cut: bool,
    pub(super) truths: Vec<Truth>,
}

impl Slip {
    pub(super) const ALL: [Self; 22] = [
        Self::None,
        Self::SingleQuotes,
        Self::SmartQuotes,
        Self::BareKeys,
        Self::OthersWords,
        Self::TrailingComma,
        Self::MissingCommaOnLines,
        Self::MissingComma,
        Self::DoubledBraces,
        Self::RawNewline,
        Self::RawBackslash,
        Self::FenceInside,
        Self::Fence,
        Self::Prose,
        Self::Prefix,
        Self::NameCase,
        Self::TextForValue,
        Self::KeyCase,
        Self::MissingClosers,
        Self::CutAtLength,
        Self::CutUnsaid,
        Self::BackslashThatEscapes,
    ];

    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SingleQuotes => "single quotes",
            Self::SmartQuotes => "typographic quotes",
            Self::BareKeys => "keys without quotes",
            Self::OthersWords => "`True`, `None` in JSON; `true`, `null` in Python",
            Self::TrailingComma => "trailing comma",
            Self::MissingCommaOnLines => "a comma missing, members on lines",
            Self::MissingComma => "a comma missing, on one line",
            Self::DoubledBraces => "doubled braces",
            Self::RawNewline => "a line break in a string",
            Self::RawBackslash => "single backslashes in a string",
            Self::FenceInside => "a fence around the JSON",
            Self::Fence => "a fence around the answer",
            Self::Prose => "prose before and behind",
            Self::Prefix => "`functions.` before the name",
            Self::NameCase => "the name in another case",
            Self::TextForValue => "a number, list … as a string",
            Self::KeyCase => "an argument's name in another case",
            Self::MissingClosers => "closers missing at the end",
            Self::CutAtLength => "cut inside, the server says so",
            Self::CutUnsaid => "cut inside, the server says it is whole",
            Self::BackslashThatEscapes => "a single backslash before `t`",
        }
    }

    /// Whether a model that writes this form can do it.
    pub(super) fn is_of(self, form: Form) -> bool {
        let quoted = form.is_json() || form.body() == Body::Python;
        match self {
            Self::None
            | Self::NameCase
            | Self::KeyCase
            | Self::MissingClosers
            | Self::CutAtLength
            | Self::CutUnsaid => true,
            Self::SingleQuotes | Self::BareKeys | Self::DoubledBraces => form.is_json(),
            Self::SmartQuotes
            | Self::MissingComma
            | Self::RawNewline
            | Self::RawBackslash
            | Self::BackslashThatEscapes
            | Self::MissingCommaOnLines => quoted,
            Self::OthersWords => form.body() != Body::Gemma,
            Self::TrailingComma | Self::TextForValue => form.body() != Body::Tags,
            // In these forms the JSON is in a frame of its own.
            Self::FenceInside => form.is_json() && !is_bare(form),
            // What is no message of Harmony has no place in it.
            Self::Fence | Self::Prose => form != Form::Harmony,
            // These have it before every name.
            Self::Prefix => !matches!(form, Form::Kimi | Form::Harmony),
        }
    }

    /// An answer to the question in which this was done; `None` where there is nothing to do it to.
    pub(super) fn case(self, entry: &Entry, form: Form, rng: &mut Rng) -> Option<Case> {
        if !self.is_of(form) || !form.takes(&entry.calls) {
            return None;
        }
        let bad = rng.usize(..entry.calls.len());
        let (mut meant, mut truths) = (entry.calls.clone(), entry.truths.clone());
        let tail = self.tail();
        if let Some(tail) = tail {
            lengthen(entry, &mut meant[bad], &mut truths[bad], tail, rng)?;
        }
        let clean = write(form, &meant, Style::CLEAN, None);
        let mut said = meant;
        self.misname(&entry.tools, &mut said[bad], rng)?;
        let (style, one) = self.style(form, &said, bad, rng)?;
        let mut text = write(form, &said, style, one);
        if let Some(tail) = tail {
            let escaped = Value::String(tail.to_owned()).to_string();
            text.text = text.text.replace(&escaped[1..escaped.len() - 1], tail);
        }
        let text = self.outside(text, rng)?;
        let cut = self == Self::CutAtLength;
        (text != clean.text || self == Self::None).then_some(Case {
            text,
            clean: clean.text,
            cut,
            truths,
        })
    }

    /// What is put behind a string so that there is something to write badly.
    fn tail(self) -> Option<&'static str> {
        match self {
            Self::RawNewline => Some("\nand the second line"),
            Self::RawBackslash => Some(" C:\\data\\Windows"),
            Self::BackslashThatEscapes => Some(" C:\\temp"),
            _ => None,
        }
    }

    /// What is wrong with names and values.
    fn misname(self, tools: &Tools, call: &mut Said, rng: &mut Rng) -> Option<()> {
        let given = call.name.clone();
        match self {
            Self::Prefix => call.name = format!("functions.{given}"),
            Self::NameCase if rng.bool() => call.name = given.to_uppercase(),
            Self::NameCase => call.name = capital(&given),
            Self::KeyCase => {
                let keys: Vec<_> = call.arguments.keys().cloned().collect();
                let key = rng.choice(keys)?;
                let other = if rng.bool() { key.to_uppercase() } else { capital(&key) };
                let own = tools.get(&given)?.property(&other).is_some();
                (other != key && !own).then_some(())?;
                let members = std::mem::take(&mut call.arguments).into_iter();
                call.arguments = members
                    .map(|(name, value)| (if name == key { other.clone() } else { name }, value))
                    .collect();
            }
            Self::TextForValue => {
                let tool = tools.get(&given)?;
                let fit = |(key, value): &(&String, &mut Value)| {
                    let kind = tool.property(key).map(|it| it["type"].clone());
                    !value.is_string() && kind.is_some_and(|it| it != "string" && !it.is_null())
                };
                let (_, value) =
                    rng.choice(call.arguments.iter_mut().filter(fit).collect::<Vec<_>>())?;
                *value = Value::String(value.to_string());
            }
            _ => {}
        }
        let changed = call.name != given || !matches!(self, Self::NameCase | Self::Prefix);
        changed.then_some(())
    }

    /// How the text is written, and which call of it; `None`: all of them.
    fn style(
        self,
        form: Form,
        said: &[Said],
        bad: usize,
        rng: &mut Rng,
    ) -> Option<(Style, Option<usize>)> {
        let clean = Style::CLEAN;
        let style = match self {
            Self::SingleQuotes => Style { open: '\'', close: '\'', ..clean },
            Self::SmartQuotes => Style { open: '“', close: '”', ..clean },
            Self::BareKeys => Style { bare_keys: true, ..clean },
            Self::OthersWords => Style { others_words: true, ..clean },
            Self::TrailingComma => Style { trailing_comma: true, ..clean },
            Self::DoubledBraces => Style { doubled: rng.u8(1..=2), ..clean },
            Self::FenceInside => Style { fenced: true, ..clean },
            Self::MissingComma | Self::MissingCommaOnLines => {
                let commas = write(form, said, clean, Some(bad)).commas;
                let dropped = (commas > 0).then(|| rng.usize(..commas))?;
                let on_lines = self == Self::MissingCommaOnLines;
                let style = Style { dropped: Some(dropped), on_lines, ..clean };
                return Some((style, Some(bad)));
            }
            _ => clean,
        };
        Some((style, None))
    }

    /// What is wrong with the text as a whole.
    fn outside(self, text: Text, rng: &mut Rng) -> Option<String> {
        let Text { mut text, inside, .. } = text;
        match self {
            Self::Fence => Some(format!("```json\n{text}\n```")),
            Self::Prose => {
                let before = rng.choice(BEFORE)?;
                let behind = rng.choice(BEHIND)?;
                Some(format!("{before}\n{text}\n{behind}"))
            }
            Self::MissingClosers => {
                let from = inside.end.max(inside.start + 1);
                (from < text.trim_end().len()).then(|| {
                    let at = text.ceil_char_boundary(rng.usize(from..text.trim_end().len()));
                    text.truncate(at);
                    text
                })
            }
            Self::CutAtLength | Self::CutUnsaid => (inside.start + 1 < inside.end).then(|| {
                let at = text.floor_char_boundary(rng.usize(inside.start + 1..inside.end));
                text.truncate(at);
                text
            }),
            _ => Some(text),
        }
    }
}

const BEFORE: [&str; 4] = [
    "Let me look that up for you.\n",
    "I'll use the tool {as asked}:",
    "Sure! First [1] I need some data, then we'll see.\n",
    "**Step 1**: call the function.",
];

const BEHIND: [&str; 3] =
    ["", "\nI'll tell you what it says.", "\nOnce I have it, I can go on {if you like}."];

/// Forms in which a fence around the JSON is one around the answer, or part of the form, or in the
/// middle of a list.
fn is_bare(form: Form) -> bool {
    matches!(form, Form::Generic | Form::NameArguments | Form::DeepSeek | Form::MistralList)
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Puts a tail behind one string of the call; that call is then the only right one.
fn lengthen(
    entry: &Entry,
    call: &mut Said,
    truth: &mut Truth,
    tail: &str,
    rng: &mut Rng,
) -> Option<()> {
    let tool = entry.tools.get(&call.name)?;
    let free = |key: &str| {
        let schema = tool.property(key);
        schema.is_some_and(|it| it["type"] == "string" && it.get("enum").is_none())
    };
    let keys: Vec<_> = call
        .arguments
        .iter()
        .filter(|(key, value)| value.is_string() && free(key) && is_word(key))
        .map(|(key, _)| key.clone())
        .collect();
    let key = rng.choice(keys)?;
    let longer = format!("{}{tail}", call.arguments[&key].as_str()?);
    truth.options.insert(key.clone(), json!([longer]));
    call.arguments.insert(key, longer.into());
    Some(())
}
