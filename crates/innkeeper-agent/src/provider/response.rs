//! What a model answers, whole and in pieces.

use crate::conversation::{Answer, Said};

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// What it says.
    pub answer: Answer,
    /// Why it ends.
    pub finish: Finish,
    /// What it cost; `None` where the provider did not say.
    pub usage: Option<Usage>,
    /// The model that answered, as it calls itself.
    pub model: Option<String>,
}

/// Why an answer ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Finish {
    /// The model had said all it wanted.
    #[default]
    Stop,
    /// It waits for the results of its calls.
    ToolCalls,
    /// It was cut at the greatest length: a call in it may lack its end.
    Length,
    /// The context window is full.
    ContextFull,
    /// The model, or who watches it, declined.
    Refused,
    /// The provider could not read the call that the model wrote.
    Malformed,
    /// The provider wants to be asked to go on.
    Paused,
    /// Something else, in the provider's word.
    Other(String),
}

/// What an answer cost, in tokens, as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All that was read, what was cached included.
    pub prompt_tokens: u64,
    /// All that was written, thoughts included.
    pub completion_tokens: u64,
    /// Of what was read, what was cached.
    pub cached_tokens: u64,
    /// Of what was written, thoughts.
    pub reasoning_tokens: u64,
}

/// A piece of an answer, in the order of the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Text for the reader.
    Text(String),
    /// What the model thinks.
    Reasoning(String),
    /// A call has begun.
    CallStart {
        /// Counts the calls of this answer from 0.
        index: usize,
        /// The tool, by its public name; as the model said it, where no offered tool has that name.
        name: String,
    },
    /// A piece of a call's arguments, as the model writes them; never repeated.
    Arguments {
        /// Which call.
        index: usize,
        /// The piece.
        fragment: String,
    },
    /// The answer is complete: this is all of it. Only now may calls be run.
    Done(Box<Response>),
}

impl Usage {
    /// Read and written together.
    pub fn total_tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Of two answers together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
        }
    }
}

impl Response {
    /// An answer of one text, as a model of one's own gives it.
    pub fn text(text: impl Into<String>) -> Self {
        Self { answer: Answer::text(text), ..Self::default() }
    }

    /// The same in pieces, [`Piece::Done`] last.
    pub fn into_pieces(self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut calls = 0;
        for part in &self.answer.parts {
            match &part.said {
                Said::Text(text) => pieces.push(Piece::Text(text.clone())),
                Said::Reasoning(text) if text.is_empty() => {}
                Said::Reasoning(text) => pieces.push(Piece::Reasoning(text.clone())),
                Said::Call(call) => {
                    let (index, name) = (calls, call.name.clone());
                    pieces.push(Piece::CallStart { index, name });
                    let fragment = call.arguments.clone();
                    pieces.push(Piece::Arguments { index, fragment });
                    calls += 1;
                }
                Said::Other => {}
            }
        }
        pieces.push(Piece::Done(Box::new(self)));
        pieces
    }
}
