//! Finds out which tools a provider's error is about.
//!
//! Providers name a tool by its place in the request or by its name: OpenAI and the servers with its
//! API write `tools[3].function.parameters` or `function 'x'`, Anthropic
//! `tools.3.custom.input_schema`, Gemini `tools[0].function_declarations[3]`,
//! `FunctionDeclaration 'x'` or `` `x` functionDeclaration``, and FastAPI servers `["body", "tools", 3]`.

use std::error::Error;
use std::fmt;

use super::tool_encoding::EncodedTools;
use super::{LlmError, LlmErrorKind};

/// Maximum number of bytes of an error that are searched; errors that quote the request are longer.
const MAX_SEARCHED_BYTES: usize = 64 << 10;

/// What a provider says about the tools of a request that it rejects: the source of an
/// [`LlmError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolRejection {
    /// The public names of the tools that the error names.
    Tools(Vec<String>),
    /// The provider cannot enforce the schemas of the tools.
    Strict,
    /// The request has too many tools.
    TooMany {
        /// The number of tools that the provider takes.
        max_tools: usize,
    },
}

impl fmt::Display for ToolRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tools(tools) => write!(f, "the provider rejects `{}`", tools.join("`, `")),
            Self::Strict => f.write_str("the provider cannot enforce the schemas of the tools"),
            Self::TooMany { max_tools } => {
                write!(f, "the provider takes at most {max_tools} tools")
            }
        }
    }
}

impl Error for ToolRejection {}

impl ToolRejection {
    /// Adds to the error of a rejected request what it says about tools. `body` is the body of an
    /// HTTP error.
    pub(crate) fn add_to(error: LlmError, body: &str, tools: &EncodedTools) -> LlmError {
        if error.kind != LlmErrorKind::InvalidRequest {
            return error;
        }
        match Self::from_error(&error.message, body, tools) {
            Some(rejection) => LlmError { source: Some(Box::new(rejection)), ..error },
            None => error,
        }
    }

    /// Reads the error of a rejected request. `message` is the provider's message, `body` the whole
    /// response.
    fn from_error(message: &str, body: &str, tools: &EncodedTools) -> Option<Self> {
        if tools.is_empty() {
            return None;
        }
        let body = &body[..body.floor_char_boundary(MAX_SEARCHED_BYTES)];
        for text in [message, body] {
            let named = named_tools(text, tools);
            if !named.is_empty() {
                return Some(Self::Tools(named));
            }
        }
        if tools.strict && is_about_strict_mode(message) {
            return Some(Self::Strict);
        }
        max_tools(message, tools.as_slice().len()).map(|max_tools| Self::TooMany { max_tools })
    }
}

/// Words of errors about the conversation, which may name a tool as well.
const HISTORY_WORDS: [&str; 12] = [
    "messages[",
    "messages.",
    "contents[",
    "contents.",
    "input[",
    "tool_calls",
    "tool_call_id",
    "tool_use",
    "tool_result",
    "tool output",
    "function response",
    "function call turn",
];

/// Returns the public names of the tools that the text names, in the order of the request.
fn named_tools(text: &str, tools: &EncodedTools) -> Vec<String> {
    let lower = text.to_ascii_lowercase();
    let is_about_history = HISTORY_WORDS.iter().any(|word| lower.contains(word));
    let mut indexes: Vec<usize> = Vec::new();
    for list in ["tools", "function_declarations", "functiondeclarations"] {
        for (at, _) in lower.match_indices(list) {
            if !ends_with_name(&lower[..at]) {
                indexes.extend(index_at_start(&lower[at + list.len()..]));
            }
        }
    }
    let encoded = tools.as_slice().iter().enumerate();
    let named = encoded.filter(|(at, tool)| {
        indexes.contains(at) || !is_about_history && is_named(text, &lower, &tool.alias)
    });
    named.map(|(_, tool)| tools.public_name(&tool.alias).to_owned()).collect()
}

/// Whether the text ends within a longer name.
fn ends_with_name(text: &str) -> bool {
    text.ends_with(is_name_char)
}

fn is_name_char(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-')
}

/// Returns the index at the start of a text: `[3]`, `.3.`, `/3` or, after a quoted name, `, 3`.
fn index_at_start(text: &str) -> Option<usize> {
    let unquoted = text.trim_start_matches(['\\', '\'', '"']);
    let is_quoted = unquoted.len() < text.len();
    let separator = unquoted.chars().next()?;
    let rest = match separator {
        '[' | '.' | '/' => &unquoted[1..],
        ',' if is_quoted => unquoted[1..].trim_start(),
        _ => return None,
    };
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let index = rest[..end].parse().ok()?;
    let behind = &rest[end..];
    // The index of Gemini's list of lists: the index of the declaration follows.
    let is_outer = behind.starts_with("].function_declarations[")
        || behind.starts_with("].functiondeclarations[")
        || behind.starts_with(is_name_char);
    (!is_outer).then_some(index)
}

/// Whether the text has this name where it speaks of a tool. `lower` is the text in lower case.
fn is_named(text: &str, lower: &str, alias: &str) -> bool {
    const QUOTES: [char; 7] = ['\\', '\'', '"', '`', '\u{2018}', '\u{2019}', '\u{201C}'];
    text.match_indices(alias).any(|(at, _)| {
        let before = &lower[..at];
        let behind = &lower[at + alias.len()..];
        let unquoted = before.trim_end_matches(QUOTES);
        let is_quoted = unquoted.len() < before.len();
        // Without quotes, a plain word such as `call` may belong to the sentence.
        let is_distinct = is_quoted || alias.contains(['_', '-']);
        let is_whole = !ends_with_name(before) && !behind.starts_with(is_name_char);
        let behind = behind.trim_start_matches(QUOTES).trim_start();
        let next_word = behind.split(|character| !is_name_char(character)).next();
        let next_is_tool_word = is_quoted && next_word.is_some_and(is_tool_word);
        is_whole && is_distinct && (next_is_tool_word || ends_with_tool_word(unquoted))
    })
}

/// Whether the last word before a name says that the name is that of a tool.
fn ends_with_tool_word(text: &str) -> bool {
    let mut words =
        text.rsplit(|character| !is_name_char(character)).filter(|word| !word.is_empty());
    let mut word = words.next().unwrap_or_default();
    if matches!(word, "name" | "named" | "called" | "declaration") {
        word = words.next().unwrap_or_default();
    }
    is_tool_word(word)
}

/// Whether a word in lower case means a tool.
fn is_tool_word(word: &str) -> bool {
    matches!(word, "function" | "tool" | "functiondeclaration" | "function_declaration")
}

/// Whether a message says that the provider cannot enforce the schemas, as Anthropic's "The compiled
/// grammar is too large" does.
fn is_about_strict_mode(message: &str) -> bool {
    let lower = message.to_ascii_lowercase();
    lower.contains("compiled grammar")
        || lower.contains("strict")
            && ["tool", "schema", "function"].iter().any(|word| lower.contains(word))
}

/// Returns the number of tools that the provider takes, if the message says that there are too many.
fn max_tools(message: &str, count: usize) -> Option<usize> {
    let lower = message.to_ascii_lowercase();
    let names_tools = ["tools", "functions", "function declarations", "function_declarations"]
        .iter()
        .any(|name| lower.contains(name));
    let names_limit = ["too long", "too many", "at most", "maximum", "exceed", "limit"]
        .iter()
        .any(|phrase| lower.contains(phrase));
    if !names_tools || !names_limit {
        return None;
    }
    let numbers = lower.split(|character: char| !character.is_ascii_digit());
    // Smaller numbers are no limit for a list, but indexes or versions.
    numbers.filter_map(|digits| digits.parse().ok()).find(|limit| (8..count).contains(limit))
}

#[cfg(test)]
mod tests;
