//! Fourteen ways in which models write calls.

use innkeeper_toolcall::Format;
use serde_json::{Map, Value};

use super::truth::Said;

/// A way of writing calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
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

/// What of a form is written how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// The whole call is JSON.
    Call,
    /// The arguments are JSON, the name stands outside.
    Arguments,
    /// Each argument has its tags.
    Tags,
    /// The call is Python.
    Python,
    /// Bare keys, and quotes of its own.
    Gemma,
}

impl Form {
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

    /// Its name in tables and for the published parsers.
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

    pub(super) fn body(self) -> Body {
        match self {
            Self::Generic
            | Self::NameArguments
            | Self::Hermes
            | Self::Llama
            | Self::MistralList => Body::Call,
            Self::MistralArgs | Self::DeepSeek | Self::Kimi | Self::Harmony => Body::Arguments,
            Self::QwenXml | Self::Glm | Self::MiniMax => Body::Tags,
            Self::Pythonic => Body::Python,
            Self::Gemma => Body::Gemma,
        }
    }

    /// The format that reads it.
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
        matches!(self.body(), Body::Call | Body::Arguments)
    }

    /// Whether the form can say these calls at all.
    pub(super) fn takes(self, calls: &[Said]) -> bool {
        let words = |it: &Said| it.arguments.keys().all(|key| is_word(key));
        self != Self::Pythonic || calls.iter().all(words)
    }
}

pub(super) fn is_word(key: &str) -> bool {
    !key.starts_with(|it: char| it.is_ascii_digit())
        && !key.is_empty()
        && key.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
}

/// How JSON is written where it is not written well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub(super) open: char,
    pub(super) close: char,
    pub(super) bare_keys: bool,
    /// `True`, `False`, `None` in place of JSON's words; the other way round in Python.
    pub(super) others_words: bool,
    pub(super) trailing_comma: bool,
    /// The comma that is left out, of those between members and items.
    pub(super) dropped: Option<usize>,
    pub(super) on_lines: bool,
    /// Braces doubled: none, the outer ones, all.
    pub(super) doubled: u8,
    pub(super) fenced: bool,
}

impl Style {
    pub(super) const CLEAN: Self = Self {
        open: '"',
        close: '"',
        bare_keys: false,
        others_words: false,
        trailing_comma: false,
        dropped: None,
        on_lines: false,
        doubled: 0,
        fenced: false,
    };
}

/// Calls as text.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) text: String,
    /// Where the last call's arguments begin, and where what closes them and the call does.
    pub(super) inside: std::ops::Range<usize>,
    /// How many commas stand between members and items of the call that is written badly.
    pub(super) commas: usize,
}

/// Writes these calls; `style` is that of the call at `bad`, or of all.
pub(super) fn write(form: Form, calls: &[Said], style: Style, bad: Option<usize>) -> Text {
    let mut all = Text { text: String::new(), inside: 0..0, commas: 0 };
    let (begin, between, end) = frame(form);
    all.text.push_str(begin);
    for (at, call) in calls.iter().enumerate() {
        let here = bad.is_none_or(|bad| bad == at);
        let style = if here { style } else { Style::CLEAN };
        all.text.push_str(if at == 0 { "" } else { between });
        let (before, after) = around(form, &call.name, at);
        all.text.push_str(&before);
        let begins = all.text.len();
        let mut pen = Pen { out: String::new(), style, commas: 0, python: false };
        pen.call(form, call);
        all.commas = if here { pen.commas } else { all.commas };
        all.text.push_str(&pen.out);
        let closes = if form.body() == Body::Tags {
            all.text.len()
        } else {
            all.text.trim_end_matches(['}', ']', ' ', '\n', '`']).len()
        };
        all.inside = begins..closes.max(begins);
        all.text.push_str(&after);
    }
    all.text.push_str(end);
    all
}

/// What stands before, between and after all calls.
fn frame(form: Form) -> (&'static str, &'static str, &'static str) {
    match form {
        Form::Generic | Form::NameArguments | Form::Hermes | Form::QwenXml | Form::Glm => {
            ("", "\n", "")
        }
        Form::Llama => ("<|python_tag|>", "; ", ""),
        Form::MistralList => ("[TOOL_CALLS] [", ", ", "]"),
        Form::MistralArgs | Form::Gemma => ("", "", ""),
        Form::DeepSeek => ("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>"),
        Form::Kimi => ("<|tool_calls_section_begin|>", "", "<|tool_calls_section_end|>"),
        Form::Harmony => ("", "<|start|>assistant", ""),
        Form::MiniMax => ("<minimax:tool_call>\n", "\n", "\n</minimax:tool_call>"),
        Form::Pythonic => ("[", ", ", "]"),
    }
}

/// What stands before and after the part of one call that can be written badly.
fn around(form: Form, name: &str, at: usize) -> (String, String) {
    let (before, after) = match form {
        Form::Generic | Form::NameArguments | Form::Llama | Form::MistralList => {
            (String::new(), "")
        }
        Form::Hermes => ("<tool_call>\n".to_owned(), "\n</tool_call>"),
        Form::MistralArgs => (format!("[TOOL_CALLS]{name}[ARGS]"), ""),
        Form::DeepSeek => (
            format!("<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n"),
            "\n```<｜tool▁call▁end｜>",
        ),
        Form::Kimi => (
            format!("<|tool_call_begin|>functions.{name}:{at}<|tool_call_argument_begin|>"),
            "<|tool_call_end|>",
        ),
        Form::Harmony => (
            format!("<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>"),
            "<|call|>",
        ),
        Form::QwenXml => (format!("<tool_call>\n<function={name}>\n"), "</function>\n</tool_call>"),
        Form::Glm => (format!("<tool_call>{name}\n"), "</tool_call>"),
        Form::MiniMax => (format!("<invoke name=\"{name}\">\n"), "</invoke>"),
        Form::Pythonic => (format!("{name}("), ")"),
        Form::Gemma => (format!("<|tool_call>call:{name}"), "<tool_call|>"),
    };
    (before, after.to_owned())
}

/// Writes the part of one call that can be written badly.
struct Pen {
    out: String,
    style: Style,
    commas: usize,
    python: bool,
}

impl Pen {
    fn call(&mut self, form: Form, call: &Said) {
        let Said { name, arguments } = call;
        match form.body() {
            Body::Call => {
                let (names, rest) = match form {
                    Form::Generic => ("tool", "params"),
                    Form::Llama => ("name", "parameters"),
                    _ => ("name", "arguments"),
                };
                let mut whole = Map::new();
                whole.insert(names.to_owned(), name.clone().into());
                whole.insert(rest.to_owned(), arguments.clone().into());
                self.json(&whole);
            }
            Body::Arguments => self.json(arguments),
            Body::Tags => self.tags(form, arguments),
            Body::Python => {
                self.python = true;
                let last = arguments.len().saturating_sub(1);
                for (at, (key, value)) in arguments.iter().enumerate() {
                    self.out.push_str(key);
                    self.out.push('=');
                    self.value(value, 0);
                    self.separate(at == last, 0);
                }
            }
            Body::Gemma => {
                self.gemma(&Value::Object(arguments.clone()));
            }
        }
    }

    fn json(&mut self, members: &Map<String, Value>) {
        let fence = self.style.fenced;
        self.out.push_str(if fence { "```json\n" } else { "" });
        self.object(members, 0);
        self.out.push_str(if fence { "\n```" } else { "" });
    }

    fn tags(&mut self, form: Form, arguments: &Map<String, Value>) {
        for (key, value) in arguments {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_) => {
                    let mut pen =
                        Self { out: String::new(), style: self.style, commas: 0, python: false };
                    pen.value(value, 0);
                    pen.out
                }
            };
            let line = match form {
                Form::QwenXml => format!("<parameter={key}>\n{text}\n</parameter>\n"),
                Form::Glm => {
                    format!("<arg_key>{key}</arg_key>\n<arg_value>{text}</arg_value>\n")
                }
                _ => format!("<parameter name=\"{key}\">{text}</parameter>\n"),
            };
            self.out.push_str(&line);
        }
    }

    fn object(&mut self, members: &Map<String, Value>, depth: usize) {
        let twice = self.style.doubled > u8::from(depth > 0);
        self.out.push_str(if twice { "{{" } else { "{" });
        self.line(!members.is_empty(), depth + 1);
        let last = members.len().saturating_sub(1);
        for (at, (key, value)) in members.iter().enumerate() {
            if self.style.bare_keys && is_word(key) {
                self.out.push_str(key);
            } else {
                self.string(key);
            }
            self.out.push_str(": ");
            self.value(value, depth + 1);
            self.separate(at == last, depth + 1);
        }
        self.line(!members.is_empty(), depth);
        self.out.push_str(if twice { "}}" } else { "}" });
    }

    fn value(&mut self, value: &Value, depth: usize) {
        let python = self.python != self.style.others_words;
        match value {
            Value::Null => self.out.push_str(if python { "None" } else { "null" }),
            Value::Bool(true) => self.out.push_str(if python { "True" } else { "true" }),
            Value::Bool(false) => self.out.push_str(if python { "False" } else { "false" }),
            Value::Number(number) => self.out.push_str(&number.to_string()),
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                self.out.push('[');
                let last = items.len().saturating_sub(1);
                for (at, item) in items.iter().enumerate() {
                    self.value(item, depth + 1);
                    self.separate(at == last, depth + 1);
                }
                self.out.push(']');
            }
            Value::Object(members) => self.object(members, depth),
        }
    }

    /// What stands after a member or an item.
    fn separate(&mut self, is_last: bool, depth: usize) {
        if is_last {
            self.out.push_str(if self.style.trailing_comma { "," } else { "" });
            return;
        }
        let dropped = self.style.dropped == Some(self.commas);
        self.commas += 1;
        self.out.push_str(if dropped { "" } else { "," });
        if self.style.on_lines { self.line(true, depth) } else { self.out.push(' ') }
    }

    fn line(&mut self, wanted: bool, depth: usize) {
        if wanted && self.style.on_lines {
            self.out.push('\n');
            self.out.push_str(&"  ".repeat(depth));
        }
    }

    fn string(&mut self, text: &str) {
        let Style { open, close, .. } = self.style;
        self.out.push(open);
        let json = Value::String(text.to_owned()).to_string();
        let inner = &json[1..json.len() - 1];
        if close == '"' {
            self.out.push_str(inner);
        } else {
            let inner = inner.replace("\\\"", "\"");
            self.out.push_str(&inner.replace(close, &format!("\\{close}")));
        }
        self.out.push(close);
    }

    fn gemma(&mut self, value: &Value) {
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
                    self.gemma(item);
                }
                self.out.push(']');
            }
            Value::Object(members) => {
                self.out.push('{');
                for (at, (key, item)) in members.iter().enumerate() {
                    self.out.push_str(if at == 0 { "" } else { "," });
                    self.out.push_str(key);
                    self.out.push(':');
                    self.gemma(item);
                }
                let comma = self.style.trailing_comma && !members.is_empty();
                self.out.push_str(if comma { ",}" } else { "}" });
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => self.value(value, 0),
        }
    }
}
