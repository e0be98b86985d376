//! Fourteen syntaxes in which models write calls.

use innkeeper_toolcall::Format;
use serde_json::{Map, Value};

use super::ground_truth::IntendedCall;

/// A syntax of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallSyntax {
    /// `{"tool": …, "params": …}`.
    Generic,
    /// `{"name": …, "arguments": …}`.
    NameArguments,
    Hermes,
    Llama,
    MistralList,
    MistralArgs,
    DeepSeek,
    Kimi,
    Harmony,
    QwenXml,
    Glm,
    MiniMax,
    Pythonic,
    Gemma,
}

/// The encoding of a call in a syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyKind {
    /// The whole call is JSON.
    Call,
    /// The arguments are JSON; the name is outside.
    Arguments,
    /// Each argument has its own tags.
    Tags,
    /// The call is Python.
    Python,
    /// Gemma's own syntax, with bare keys and its own quotes.
    Gemma,
}

impl CallSyntax {
    pub(super) const ALL: [Self; 14] = [
        Self::Generic,
        Self::NameArguments,
        Self::Hermes,
        Self::Llama,
        Self::MistralList,
        Self::MistralArgs,
        Self::DeepSeek,
        Self::Kimi,
        Self::Harmony,
        Self::QwenXml,
        Self::Glm,
        Self::MiniMax,
        Self::Pythonic,
        Self::Gemma,
    ];

    /// Returns the name in tables and for the published parsers.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Generic => "tool/params",
            Self::NameArguments => "name/arguments",
            Self::Hermes => "hermes",
            Self::Llama => "llama3.1",
            Self::MistralList => "mistral list",
            Self::MistralArgs => "mistral args",
            Self::DeepSeek => "deepseek",
            Self::Kimi => "kimi",
            Self::Harmony => "harmony",
            Self::QwenXml => "qwen-xml",
            Self::Glm => "glm",
            Self::MiniMax => "minimax",
            Self::Pythonic => "pythonic",
            Self::Gemma => "gemma",
        }
    }

    pub(super) fn body_kind(self) -> BodyKind {
        match self {
            Self::Generic
            | Self::NameArguments
            | Self::Hermes
            | Self::Llama
            | Self::MistralList => BodyKind::Call,
            Self::MistralArgs | Self::DeepSeek | Self::Kimi | Self::Harmony => BodyKind::Arguments,
            Self::QwenXml | Self::Glm | Self::MiniMax => BodyKind::Tags,
            Self::Pythonic => BodyKind::Python,
            Self::Gemma => BodyKind::Gemma,
        }
    }

    /// Returns the parser format of the syntax.
    pub(super) fn format(self) -> Format {
        match self {
            Self::Generic | Self::NameArguments => Format::Generic,
            Self::Hermes => Format::Hermes,
            Self::Llama | Self::Pythonic => Format::Llama,
            Self::MistralList | Self::MistralArgs => Format::Mistral,
            Self::DeepSeek => Format::DeepSeek,
            Self::Kimi => Format::Kimi,
            Self::Harmony => Format::Harmony,
            Self::QwenXml => Format::QwenXml,
            Self::Glm => Format::Glm,
            Self::MiniMax => Format::Invoke,
            Self::Gemma => Format::Gemma,
        }
    }

    pub(super) fn is_json(self) -> bool {
        matches!(self.body_kind(), BodyKind::Call | BodyKind::Arguments)
    }

    /// Returns whether the syntax can express these calls.
    pub(super) fn supports(self, calls: &[IntendedCall]) -> bool {
        let has_identifier_keys =
            |call: &IntendedCall| call.arguments.keys().all(|key| is_identifier(key));
        self != Self::Pythonic || calls.iter().all(has_identifier_keys)
    }
}

pub(super) fn is_identifier(key: &str) -> bool {
    !key.starts_with(|letter: char| letter.is_ascii_digit())
        && !key.is_empty()
        && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Deviations from well-formed JSON.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonStyle {
    pub(super) open_quote: char,
    pub(super) close_quote: char,
    pub(super) bare_keys: bool,
    /// `True`, `False`, `None` in place of JSON's literals; JSON's literals in Python.
    pub(super) foreign_literals: bool,
    pub(super) trailing_comma: bool,
    /// The index of the dropped comma among the commas between members and items.
    pub(super) dropped_comma: Option<usize>,
    pub(super) multiline: bool,
    /// Doubled braces: 0 for none, 1 for the outer ones, 2 for all.
    pub(super) doubled_braces: u8,
    pub(super) fenced: bool,
}

impl JsonStyle {
    pub(super) const CLEAN: Self = Self {
        open_quote: '"',
        close_quote: '"',
        bare_keys: false,
        foreign_literals: false,
        trailing_comma: false,
        dropped_comma: None,
        multiline: false,
        doubled_braces: 0,
        fenced: false,
    };
}

/// Calls as text.
#[derive(Debug)]
pub(super) struct WrittenCalls {
    pub(super) text: String,
    /// From the start of the last call's arguments to the start of their closing markup.
    pub(super) last_arguments: std::ops::Range<usize>,
    /// The number of commas between members and items of the altered call.
    pub(super) comma_count: usize,
}

/// Writes the calls; `style` applies to the call at index `bad`, or to all calls.
pub(super) fn write_calls(
    form: CallSyntax,
    calls: &[IntendedCall],
    style: JsonStyle,
    bad: Option<usize>,
) -> WrittenCalls {
    let mut all = WrittenCalls { text: String::new(), last_arguments: 0..0, comma_count: 0 };
    let (open, between, close) = outer_markup(form);
    all.text.push_str(open);
    for (at, call) in calls.iter().enumerate() {
        let here = bad.is_none_or(|bad| bad == at);
        let style = if here { style } else { JsonStyle::CLEAN };
        all.text.push_str(if at == 0 { "" } else { between });
        let (before, after) = call_markup(form, &call.name, at);
        all.text.push_str(&before);
        let begins = all.text.len();
        let mut writer = CallWriter { out: String::new(), style, comma_count: 0, is_python: false };
        writer.write_call(form, call);
        all.comma_count = if here { writer.comma_count } else { all.comma_count };
        all.text.push_str(&writer.out);
        let closes = if form.body_kind() == BodyKind::Tags {
            all.text.len()
        } else {
            all.text.trim_end_matches(['}', ']', ' ', '\n', '`']).len()
        };
        all.last_arguments = begins..closes.max(begins);
        all.text.push_str(&after);
    }
    all.text.push_str(close);
    all
}

/// Returns the markup before, between and after all calls.
fn outer_markup(form: CallSyntax) -> (&'static str, &'static str, &'static str) {
    match form {
        CallSyntax::Generic
        | CallSyntax::NameArguments
        | CallSyntax::Hermes
        | CallSyntax::QwenXml
        | CallSyntax::Glm => ("", "\n", ""),
        CallSyntax::Llama => ("<|python_tag|>", "; ", ""),
        CallSyntax::MistralList => ("[TOOL_CALLS] [", ", ", "]"),
        CallSyntax::MistralArgs | CallSyntax::Gemma => ("", "", ""),
        CallSyntax::DeepSeek => ("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>"),
        CallSyntax::Kimi => ("<|tool_calls_section_begin|>", "", "<|tool_calls_section_end|>"),
        CallSyntax::Harmony => ("", "<|start|>assistant", ""),
        CallSyntax::MiniMax => ("<minimax:tool_call>\n", "\n", "\n</minimax:tool_call>"),
        CallSyntax::Pythonic => ("[", ", ", "]"),
    }
}

/// Returns the markup before and after the alterable part of one call.
fn call_markup(form: CallSyntax, name: &str, at: usize) -> (String, String) {
    let (before, after) = match form {
        CallSyntax::Generic
        | CallSyntax::NameArguments
        | CallSyntax::Llama
        | CallSyntax::MistralList => (String::new(), ""),
        CallSyntax::Hermes => ("<tool_call>\n".to_owned(), "\n</tool_call>"),
        CallSyntax::MistralArgs => (format!("[TOOL_CALLS]{name}[ARGS]"), ""),
        CallSyntax::DeepSeek => (
            format!("<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n"),
            "\n```<｜tool▁call▁end｜>",
        ),
        CallSyntax::Kimi => (
            format!("<|tool_call_begin|>functions.{name}:{at}<|tool_call_argument_begin|>"),
            "<|tool_call_end|>",
        ),
        CallSyntax::Harmony => (
            format!("<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>"),
            "<|call|>",
        ),
        CallSyntax::QwenXml => {
            (format!("<tool_call>\n<function={name}>\n"), "</function>\n</tool_call>")
        }
        CallSyntax::Glm => (format!("<tool_call>{name}\n"), "</tool_call>"),
        CallSyntax::MiniMax => (format!("<invoke name=\"{name}\">\n"), "</invoke>"),
        CallSyntax::Pythonic => (format!("{name}("), ")"),
        CallSyntax::Gemma => (format!("<|tool_call>call:{name}"), "<tool_call|>"),
    };
    (before, after.to_owned())
}

/// Writes the alterable part of one call.
struct CallWriter {
    out: String,
    style: JsonStyle,
    comma_count: usize,
    is_python: bool,
}

impl CallWriter {
    fn write_call(&mut self, form: CallSyntax, call: &IntendedCall) {
        let IntendedCall { name, arguments } = call;
        match form.body_kind() {
            BodyKind::Call => {
                let (names, rest) = match form {
                    CallSyntax::Generic => ("tool", "params"),
                    CallSyntax::Llama => ("name", "parameters"),
                    _ => ("name", "arguments"),
                };
                let mut members = Map::new();
                members.insert(names.to_owned(), name.clone().into());
                members.insert(rest.to_owned(), arguments.clone().into());
                self.write_json(&members);
            }
            BodyKind::Arguments => self.write_json(arguments),
            BodyKind::Tags => self.write_tags(form, arguments),
            BodyKind::Python => {
                self.is_python = true;
                let last = arguments.len().saturating_sub(1);
                for (at, (key, value)) in arguments.iter().enumerate() {
                    self.out.push_str(key);
                    self.out.push('=');
                    self.write_value(value, 0);
                    self.write_separator(at == last, 0);
                }
            }
            BodyKind::Gemma => {
                self.write_gemma(&Value::Object(arguments.clone()));
            }
        }
    }

    fn write_json(&mut self, members: &Map<String, Value>) {
        let fence = self.style.fenced;
        self.out.push_str(if fence { "```json\n" } else { "" });
        self.write_object(members, 0);
        self.out.push_str(if fence { "\n```" } else { "" });
    }

    fn write_tags(&mut self, form: CallSyntax, arguments: &Map<String, Value>) {
        for (key, value) in arguments {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_) => {
                    let mut writer = Self {
                        out: String::new(),
                        style: self.style,
                        comma_count: 0,
                        is_python: false,
                    };
                    writer.write_value(value, 0);
                    writer.out
                }
            };
            let line = match form {
                CallSyntax::QwenXml => format!("<parameter={key}>\n{text}\n</parameter>\n"),
                CallSyntax::Glm => {
                    format!("<arg_key>{key}</arg_key>\n<arg_value>{text}</arg_value>\n")
                }
                _ => format!("<parameter name=\"{key}\">{text}</parameter>\n"),
            };
            self.out.push_str(&line);
        }
    }

    fn write_object(&mut self, members: &Map<String, Value>, depth: usize) {
        let is_doubled = self.style.doubled_braces > u8::from(depth > 0);
        self.out.push_str(if is_doubled { "{{" } else { "{" });
        self.write_newline(!members.is_empty(), depth + 1);
        let last = members.len().saturating_sub(1);
        for (at, (key, value)) in members.iter().enumerate() {
            if self.style.bare_keys && is_identifier(key) {
                self.out.push_str(key);
            } else {
                self.write_string(key);
            }
            self.out.push_str(": ");
            self.write_value(value, depth + 1);
            self.write_separator(at == last, depth + 1);
        }
        self.write_newline(!members.is_empty(), depth);
        self.out.push_str(if is_doubled { "}}" } else { "}" });
    }

    fn write_value(&mut self, value: &Value, depth: usize) {
        let python = self.is_python != self.style.foreign_literals;
        match value {
            Value::Null => self.out.push_str(if python { "None" } else { "null" }),
            Value::Bool(true) => self.out.push_str(if python { "True" } else { "true" }),
            Value::Bool(false) => self.out.push_str(if python { "False" } else { "false" }),
            Value::Number(number) => self.out.push_str(&number.to_string()),
            Value::String(text) => self.write_string(text),
            Value::Array(items) => {
                self.out.push('[');
                let last = items.len().saturating_sub(1);
                for (at, item) in items.iter().enumerate() {
                    self.write_value(item, depth + 1);
                    self.write_separator(at == last, depth + 1);
                }
                self.out.push(']');
            }
            Value::Object(members) => self.write_object(members, depth),
        }
    }

    /// Writes the separator after a member or an item.
    fn write_separator(&mut self, is_last: bool, depth: usize) {
        if is_last {
            self.out.push_str(if self.style.trailing_comma { "," } else { "" });
            return;
        }
        let dropped = self.style.dropped_comma == Some(self.comma_count);
        self.comma_count += 1;
        self.out.push_str(if dropped { "" } else { "," });
        if self.style.multiline { self.write_newline(true, depth) } else { self.out.push(' ') }
    }

    fn write_newline(&mut self, enabled: bool, depth: usize) {
        if enabled && self.style.multiline {
            self.out.push('\n');
            self.out.push_str(&"  ".repeat(depth));
        }
    }

    fn write_string(&mut self, text: &str) {
        let JsonStyle { open_quote, close_quote, .. } = self.style;
        self.out.push(open_quote);
        let json = Value::String(text.to_owned()).to_string();
        let inner = &json[1..json.len() - 1];
        if close_quote == '"' {
            self.out.push_str(inner);
        } else {
            let inner = inner.replace("\\\"", "\"");
            self.out.push_str(&inner.replace(close_quote, &format!("\\{close_quote}")));
        }
        self.out.push(close_quote);
    }

    fn write_gemma(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.out.push_str("<|\"|>");
                self.out.push_str(text);
                self.out.push_str("<|\"|>");
            }
            Value::Array(items) => {
                self.out.push('[');
                for (at, item) in items.iter().enumerate() {
                    self.out.push_str(if at == 0 { "" } else { "," });
                    self.write_gemma(item);
                }
                self.out.push(']');
            }
            Value::Object(members) => {
                self.out.push('{');
                for (at, (key, item)) in members.iter().enumerate() {
                    self.out.push_str(if at == 0 { "" } else { "," });
                    self.out.push_str(key);
                    self.out.push(':');
                    self.write_gemma(item);
                }
                let comma = self.style.trailing_comma && !members.is_empty();
                self.out.push_str(if comma { ",}" } else { "}" });
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => self.write_value(value, 0),
        }
    }
}
