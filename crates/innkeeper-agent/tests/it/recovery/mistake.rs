//! Mistakes of models in calls, and texts with one mistake each.

use fastrand::Rng;
use innkeeper_toolcall::Tools;
use serde_json::{Value, json};

use super::call_syntax::{
    BodyKind, CallSyntax, JsonStyle, WrittenCalls, is_identifier, write_calls,
};
use super::ground_truth::{BenchmarkEntry, ExpectedCall, IntendedCall};

/// A mistake in a written call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelMistake {
    None,
    SingleQuotes,
    SmartQuotes,
    BareKeys,
    ForeignLiterals,
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
    StringForValue,
    KeyCase,
    MissingClosers,
    ReportedCut,
    UnreportedCut,
    EscapingBackslash,
}

/// A text with a mistake, and the expected calls.
pub(super) struct MistakeCase {
    pub(super) text: String,
    pub(super) clean: String,
    /// Whether the server reports that the response was truncated.
    pub(super) is_truncated: bool,
    pub(super) expected_calls: Vec<ExpectedCall>,
}

impl ModelMistake {
    pub(super) const ALL: [Self; 22] = [
        Self::None,
        Self::SingleQuotes,
        Self::SmartQuotes,
        Self::BareKeys,
        Self::ForeignLiterals,
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
        Self::StringForValue,
        Self::KeyCase,
        Self::MissingClosers,
        Self::ReportedCut,
        Self::UnreportedCut,
        Self::EscapingBackslash,
    ];

    /// Returns the name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SingleQuotes => "single quotes",
            Self::SmartQuotes => "typographic quotes",
            Self::BareKeys => "keys without quotes",
            Self::ForeignLiterals => "`True`, `None` in JSON; `true`, `null` in Python",
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
            Self::StringForValue => "a number, list … as a string",
            Self::KeyCase => "an argument's name in another case",
            Self::MissingClosers => "closers missing at the end",
            Self::ReportedCut => "cut inside, the server says so",
            Self::UnreportedCut => "cut inside, the server says it is whole",
            Self::EscapingBackslash => "a single backslash before `t`",
        }
    }

    /// Returns whether the mistake is possible in this syntax.
    pub(super) fn applies_to(self, form: CallSyntax) -> bool {
        let quoted = form.is_json() || form.body_kind() == BodyKind::Python;
        match self {
            Self::None
            | Self::NameCase
            | Self::KeyCase
            | Self::MissingClosers
            | Self::ReportedCut
            | Self::UnreportedCut => true,
            Self::SingleQuotes | Self::BareKeys | Self::DoubledBraces => form.is_json(),
            Self::SmartQuotes
            | Self::MissingComma
            | Self::RawNewline
            | Self::RawBackslash
            | Self::EscapingBackslash
            | Self::MissingCommaOnLines => quoted,
            Self::ForeignLiterals => form.body_kind() != BodyKind::Gemma,
            Self::TrailingComma | Self::StringForValue => form.body_kind() != BodyKind::Tags,
            // These syntaxes frame the JSON themselves.
            Self::FenceInside => form.is_json() && !lacks_own_frame(form),
            // Harmony has no place outside of its messages.
            Self::Fence | Self::Prose => form != CallSyntax::Harmony,
            // These syntaxes have the prefix before every name.
            Self::Prefix => !matches!(form, CallSyntax::Kimi | CallSyntax::Harmony),
        }
    }

    /// Returns a case with this mistake; `None` if the entry has nothing to alter.
    pub(super) fn make_case(
        self,
        entry: &BenchmarkEntry,
        form: CallSyntax,
        rng: &mut Rng,
    ) -> Option<MistakeCase> {
        if !self.applies_to(form) || !form.supports(&entry.calls) {
            return None;
        }
        let bad = rng.usize(..entry.calls.len());
        let (mut calls, mut expected_calls) = (entry.calls.clone(), entry.expected_calls.clone());
        let tail = self.tail();
        if let Some(tail) = tail {
            append_tail(entry, &mut calls[bad], &mut expected_calls[bad], tail, rng)?;
        }
        let clean = write_calls(form, &calls, JsonStyle::CLEAN, None);
        let mut altered = calls;
        self.alter_names(&entry.tools, &mut altered[bad], rng)?;
        let (style, single) = self.write_style(form, &altered, bad, rng)?;
        let mut text = write_calls(form, &altered, style, single);
        if let Some(tail) = tail {
            let escaped = Value::String(tail.to_owned()).to_string();
            text.text = text.text.replace(&escaped[1..escaped.len() - 1], tail);
        }
        let text = self.alter_text(text, rng)?;
        let is_truncated = self == Self::ReportedCut;
        (text != clean.text || self == Self::None).then_some(MistakeCase {
            text,
            clean: clean.text,
            is_truncated,
            expected_calls,
        })
    }

    /// Returns a suffix for a string argument, for mistakes that need special characters.
    fn tail(self) -> Option<&'static str> {
        match self {
            Self::RawNewline => Some("\nand the second line"),
            Self::RawBackslash => Some(" C:\\data\\Windows"),
            Self::EscapingBackslash => Some(" C:\\temp"),
            _ => None,
        }
    }

    /// Alters names and values.
    fn alter_names(self, tools: &Tools, call: &mut IntendedCall, rng: &mut Rng) -> Option<()> {
        let original = call.name.clone();
        match self {
            Self::Prefix => call.name = format!("functions.{original}"),
            Self::NameCase if rng.bool() => call.name = original.to_uppercase(),
            Self::NameCase => call.name = capitalize(&original),
            Self::KeyCase => {
                let keys: Vec<_> = call.arguments.keys().cloned().collect();
                let key = rng.choice(keys)?;
                let other = if rng.bool() { key.to_uppercase() } else { capitalize(&key) };
                let is_own_property = tools.get(&original)?.property(&other).is_some();
                (other != key && !is_own_property).then_some(())?;
                let members = std::mem::take(&mut call.arguments).into_iter();
                call.arguments = members
                    .map(|(name, value)| (if name == key { other.clone() } else { name }, value))
                    .collect();
            }
            Self::StringForValue => {
                let tool = tools.get(&original)?;
                let fit = |(key, value): &(&String, &mut Value)| {
                    let kind = tool.property(key).map(|schema| schema["type"].clone());
                    !value.is_string()
                        && kind
                            .is_some_and(|kind_name| kind_name != "string" && !kind_name.is_null())
                };
                let (_, value) =
                    rng.choice(call.arguments.iter_mut().filter(fit).collect::<Vec<_>>())?;
                *value = Value::String(value.to_string());
            }
            _ => {}
        }
        let changed = call.name != original || !matches!(self, Self::NameCase | Self::Prefix);
        changed.then_some(())
    }

    /// Returns the JSON style, and the index of the call that the style applies to; `None` for all
    /// calls.
    fn write_style(
        self,
        form: CallSyntax,
        calls: &[IntendedCall],
        bad: usize,
        rng: &mut Rng,
    ) -> Option<(JsonStyle, Option<usize>)> {
        let clean = JsonStyle::CLEAN;
        let style = match self {
            Self::SingleQuotes => JsonStyle { open_quote: '\'', close_quote: '\'', ..clean },
            Self::SmartQuotes => JsonStyle { open_quote: '“', close_quote: '”', ..clean },
            Self::BareKeys => JsonStyle { bare_keys: true, ..clean },
            Self::ForeignLiterals => JsonStyle { foreign_literals: true, ..clean },
            Self::TrailingComma => JsonStyle { trailing_comma: true, ..clean },
            Self::DoubledBraces => JsonStyle { doubled_braces: rng.u8(1..=2), ..clean },
            Self::FenceInside => JsonStyle { fenced: true, ..clean },
            Self::MissingComma | Self::MissingCommaOnLines => {
                let commas = write_calls(form, calls, clean, Some(bad)).comma_count;
                let dropped = (commas > 0).then(|| rng.usize(..commas))?;
                let multiline = self == Self::MissingCommaOnLines;
                let style = JsonStyle { dropped_comma: Some(dropped), multiline, ..clean };
                return Some((style, Some(bad)));
            }
            _ => clean,
        };
        Some((style, None))
    }

    /// Alters the text as a whole.
    fn alter_text(self, text: WrittenCalls, rng: &mut Rng) -> Option<String> {
        let WrittenCalls { mut text, last_arguments, .. } = text;
        match self {
            Self::Fence => Some(format!("```json\n{text}\n```")),
            Self::Prose => {
                let before = rng.choice(PROSE_BEFORE)?;
                let after = rng.choice(PROSE_AFTER)?;
                Some(format!("{before}\n{text}\n{after}"))
            }
            Self::MissingClosers => {
                let from = last_arguments.end.max(last_arguments.start + 1);
                (from < text.trim_end().len()).then(|| {
                    let at = text.ceil_char_boundary(rng.usize(from..text.trim_end().len()));
                    text.truncate(at);
                    text
                })
            }
            Self::ReportedCut | Self::UnreportedCut => {
                (last_arguments.start + 1 < last_arguments.end).then(|| {
                    let at = text.floor_char_boundary(
                        rng.usize(last_arguments.start + 1..last_arguments.end),
                    );
                    text.truncate(at);
                    text
                })
            }
            _ => Some(text),
        }
    }
}

const PROSE_BEFORE: [&str; 4] = [
    "Let me look that up for you.\n",
    "I'll use the tool {as asked}:",
    "Sure! First [1] I need some data, then we'll see.\n",
    "**Step 1**: call the function.",
];

const PROSE_AFTER: [&str; 3] =
    ["", "\nI'll tell you what it says.", "\nOnce I have it, I can go on {if you like}."];

/// Syntaxes in which a fence around the JSON is a fence around the whole text, part of the syntax,
/// or inside a list.
fn lacks_own_frame(form: CallSyntax) -> bool {
    matches!(
        form,
        CallSyntax::Generic
            | CallSyntax::NameArguments
            | CallSyntax::DeepSeek
            | CallSyntax::MistralList
    )
}

fn capitalize(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Appends a suffix to one string of the call, and makes that value the only expected one.
fn append_tail(
    entry: &BenchmarkEntry,
    call: &mut IntendedCall,
    truth: &mut ExpectedCall,
    tail: &str,
    rng: &mut Rng,
) -> Option<()> {
    let tool = entry.tools.get(&call.name)?;
    let free = |key: &str| {
        let schema = tool.property(key);
        schema
            .is_some_and(|property| property["type"] == "string" && property.get("enum").is_none())
    };
    let keys: Vec<_> = call
        .arguments
        .iter()
        .filter(|(key, value)| value.is_string() && free(key) && is_identifier(key))
        .map(|(key, _)| key.clone())
        .collect();
    let key = rng.choice(keys)?;
    let longer = format!("{}{tail}", call.arguments[&key].as_str()?);
    truth.allowed_values.insert(key.clone(), json!([longer]));
    call.arguments.insert(key, longer.into());
    Some(())
}
