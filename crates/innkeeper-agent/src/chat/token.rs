//! Pieces of a model's text, each with what it is.

use innkeeper_toolcall::{Call, Event};

/// A piece of the text. Without those that are `Buffered`, [`Token::text`] of all put together is
/// the text that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// For the reader.
    Narrative(String),
    /// What the model wrote to itself, with the markup around it.
    Reasoning(String),
    /// A call that is run, or markup of calls: not for the reader.
    ToolCall(String),
    /// What the reader is shown in the place of a call.
    Placeholder {
        /// The text to show.
        shown: String,
        /// The call as the model wrote it; empty for all but the first call of a list.
        hidden: String,
    },
    /// Text that was meant as a call and is none: the reader is shown it.
    NoCall {
        /// The text; empty if a call of the same list carries it.
        text: String,
        /// Why it is none, in words for the model.
        why: String,
    },
    /// Text that is still being looked at. It comes again as something else: not to be shown.
    Buffered(String),
}

impl Token {
    /// The part of the input it stands for.
    pub fn text(&self) -> &str {
        match self {
            Self::Narrative(text)
            | Self::Reasoning(text)
            | Self::ToolCall(text)
            | Self::NoCall { text, .. } => text,
            Self::Placeholder { hidden, .. } => hidden,
            Self::Buffered(_) => "",
        }
    }

    /// What the reader is to be shown: narrative, placeholders, and calls that are none.
    pub fn shown(&self) -> Option<&str> {
        match self {
            Self::Narrative(text) | Self::NoCall { text, .. } => Some(text),
            Self::Placeholder { shown, .. } => Some(shown),
            Self::Reasoning(_) | Self::ToolCall(_) | Self::Buffered(_) => None,
        }
    }

    /// The name of what it is, for the log.
    pub(super) fn class(&self) -> &'static str {
        match self {
            Self::Narrative(_) => "narrative",
            Self::Reasoning(_) => "reasoning",
            Self::ToolCall(_) => "tool_call",
            Self::Placeholder { .. } => "placeholder",
            Self::NoCall { .. } => "no_call",
            Self::Buffered(_) => "buffered",
        }
    }

    /// All its text, as the log has it.
    pub(super) fn content(&self) -> &str {
        match self {
            Self::Buffered(text) => text,
            Self::Narrative(_)
            | Self::Reasoning(_)
            | Self::ToolCall(_)
            | Self::Placeholder { .. }
            | Self::NoCall { .. } => self.text(),
        }
    }

    /// How much memory it takes, about.
    pub(super) fn weight(&self) -> usize {
        let text = match self {
            Self::Placeholder { shown, hidden } => shown.len() + hidden.len(),
            Self::NoCall { text, why } => text.len() + why.len(),
            Self::Narrative(text)
            | Self::Reasoning(text)
            | Self::ToolCall(text)
            | Self::Buffered(text) => text.len(),
        };
        text + size_of::<Self>()
    }
}

/// The longest markup that waits for what follows it; the longest marker there is has 32 bytes.
const FRAME: usize = 256;

/// What an event adds.
#[derive(Debug)]
pub(super) enum Found {
    Token(Token),
    /// A call of an offered tool has begun.
    Began {
        index: usize,
        tool: String,
    },
    Call {
        index: usize,
        call: Call,
    },
}

/// Makes tokens of the interceptor's events.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    placeholder: Option<String>,
    /// Markup that belongs to the thought that may follow it.
    frame: String,
    /// Whether a thought came last, so that markup belongs to it.
    thought: bool,
}

impl Sorter {
    pub(super) fn new(placeholder: Option<String>) -> Self {
        Self { placeholder, ..Self::default() }
    }

    pub(super) fn take(&mut self, event: &Event<'_>, found: &mut Vec<Found>) {
        if let Event::Frame(text) = event {
            return self.frame(text, found);
        }
        let thought = matches!(event, Event::Reasoning(_));
        self.release(thought, found);
        self.thought = thought;
        match event {
            Event::Text(text) => found.push(Found::Token(Token::Narrative((*text).to_owned()))),
            Event::Reasoning(text) => {
                found.push(Found::Token(Token::Reasoning((*text).to_owned())));
            }
            Event::CallStart { index, name } => {
                found.push(Found::Began { index: *index, tool: (*name).to_owned() });
            }
            Event::Call { index, call, text } => {
                match &self.placeholder {
                    Some(shown) => found.push(Found::Token(Token::Placeholder {
                        shown: shown.clone(),
                        hidden: (*text).to_owned(),
                    })),
                    None if text.is_empty() => {}
                    None => found.push(Found::Token(Token::ToolCall((*text).to_owned()))),
                }
                found.push(Found::Call { index: *index, call: (*call).clone() });
            }
            Event::Rejected { rejected, text, .. } => {
                found.push(Found::Token(Token::NoCall {
                    text: (*text).to_owned(),
                    why: rejected.to_string(),
                }));
            }
            Event::Incomplete { text, .. } => {
                let why = "the text ends before the call does".to_owned();
                found.push(Found::Token(Token::NoCall { text: (*text).to_owned(), why }));
            }
            Event::Arguments { .. } | Event::Frame(_) => {}
        }
    }

    fn frame(&mut self, text: &str, found: &mut Vec<Found>) {
        if self.thought {
            self.thought = false;
            found.push(Found::Token(Token::Reasoning(text.to_owned())));
            return;
        }
        self.frame.push_str(text);
        if self.frame.len() > FRAME {
            self.release(false, found);
        }
    }

    /// Gives away the markup that waits.
    pub(super) fn release(&mut self, thought: bool, found: &mut Vec<Found>) {
        if self.frame.is_empty() {
            return;
        }
        let frame = std::mem::take(&mut self.frame);
        let token = if thought { Token::Reasoning(frame) } else { Token::ToolCall(frame) };
        found.push(Found::Token(token));
    }

    /// How many bytes wait.
    pub(super) fn held(&self) -> usize {
        self.frame.len()
    }
}
