//! Options of a parser.

use crate::format::Format;

/// Limits on the text that the parser stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParserLimits {
    /// Maximum number of characters stored for a possible call that has not yet named an offered
    /// tool. Longer text is not a call. Default: 200.
    pub max_undecided_chars: usize,
    /// Maximum length of a call in bytes, including its markers. A longer call is rejected, and its
    /// rest is text. Default: 1 MiB. The text within `max_undecided_chars` is always stored.
    pub max_call_bytes: usize,
}

impl Default for ParserLimits {
    fn default() -> Self {
        Self { max_undecided_chars: 200, max_call_bytes: 1 << 20 }
    }
}

/// Options of a tool-call parser.
#[derive(Debug, Clone)]
pub struct ParserOptions {
    /// The format of the model's calls. Default: automatic detection.
    pub format: Format,
    /// The limits on stored text.
    pub limits: ParserLimits,
    /// The end of the prompt, if known. The parser detects from the prompt whether the model is
    /// already reasoning: a `<think>` without its end is sufficient.
    pub prompt: Option<String>,
}

impl Default for ParserOptions {
    fn default() -> Self {
        Self { format: Format::Detect, limits: ParserLimits::default(), prompt: None }
    }
}
