//! Where one call ends: a lexer for each way of writing calls, fed piece by piece.
//!
//! A lexer sees every byte once, but for a bounded look ahead. It says where the call ends and,
//! as soon as it knows, which tool is named; what the call says is decoded when it is complete.

mod data;
pub(crate) mod fence;
mod gemma;
mod json;
pub(crate) mod message;
mod named;
mod parameters;
mod pythonic;
mod react;
mod scan;
mod tool_call;

use std::ops::Range;

pub(crate) use data::Data;

use crate::call::{Arguments, Reason};
use crate::event::Finish;
use crate::format::Lexing;
use crate::parse::End;
use crate::repair::Repair;

/// How far a lexer may look ahead before it decides, in bytes: white space between two markers.
pub(crate) const LOOK_AHEAD: usize = 256;

/// The longest name of a tool that is waited for, in bytes.
pub(crate) const NAME: usize = 256;

/// How many calls one list may hold; more are no list of calls.
pub(crate) const CALLS: usize = 64;

/// How many arguments one call may have.
pub(crate) const ARGUMENTS: usize = 1024;

/// What a lexer made of its input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// All is read but the last `held` bytes, which come again with more behind them.
    More { held: usize },
    /// The call ends after this many bytes of the input.
    Done { used: usize },
    /// This is no call; what follows after this many bytes has not been looked at.
    Fail { used: usize },
}

/// What became known in one read.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The tool that is called.
    pub(crate) name: Option<String>,
    /// Where in the input that became known.
    pub(crate) at: usize,
    /// Whether it is one of a list, which is told as a whole.
    pub(crate) listed: bool,
    /// Which part of the input belongs to the arguments.
    pub(crate) fragment: Option<Range<usize>>,
}

/// One call as it was written, not yet checked against anything.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Said<'t> {
    /// The tool it names.
    pub(crate) name: String,
    /// Its arguments.
    pub(crate) arguments: Arguments<'t>,
    /// What had to be mended to read that much.
    pub(crate) repairs: Vec<Repair>,
}

impl<'t> Said<'t> {
    fn new(name: impl Into<String>, arguments: Arguments<'t>) -> Self {
        Self { name: name.into(), arguments, repairs: Vec::new() }
    }
}

/// What a complete call says, or why that cannot be read.
pub(crate) type Read<'t> = Result<Vec<Said<'t>>, Reason>;

/// Finds the end of one call, or of one list of calls.
pub(crate) trait Lexer: Send {
    /// Reads on. `end` is there when nothing follows the input.
    fn read(&mut self, input: &str, end: Option<Finish>, notes: &mut Notes) -> Step;

    /// What the call says. `text` is everything this lexer has read, and `end` how it ended.
    ///
    /// # Errors
    ///
    /// What cannot be read.
    fn calls<'t>(&self, text: &'t str, end: End) -> Read<'t>;

    /// The model has said all it wanted and the call is open, with `held` bytes not read: whether
    /// only its closers are missing.
    fn stopped(&mut self, _held: usize) -> bool {
        false
    }

    /// After a failure: the JSON value this stands in, which is data and not a call.
    fn data(&mut self) -> Option<Data> {
        None
    }

    /// Whether text that turns out to be no call was meant as one.
    fn meant(&self) -> bool {
        true
    }
}

/// The lexer for what begins with this marker.
pub(crate) fn lexer(lexing: Lexing) -> Box<dyn Lexer> {
    match lexing {
        Lexing::ToolCall => Box::new(tool_call::ToolCall::default()),
        Lexing::Function => Box::new(parameters::Parameters::function()),
        Lexing::Tagged { close } => Box::new(json::JsonCalls::tagged(close)),
        Lexing::Json => Box::new(json::JsonCalls::separated()),
        Lexing::Mistral => Box::new(tool_call::Mistral::default()),
        Lexing::Named { separator, close } => Box::new(named::Named::new(separator, close)),
        Lexing::Invoke { prefix } => Box::new(parameters::Parameters::invoke(prefix)),
        Lexing::Xtml => Box::new(parameters::Parameters::xtml()),
        Lexing::Gemma => Box::new(gemma::Gemma::default()),
        Lexing::Pythonic => Box::new(pythonic::Pythonic::default()),
        Lexing::Bare => Box::new(json::JsonCalls::bare()),
        Lexing::Fence => Box::new(fence::Fence::default()),
        Lexing::React => Box::new(react::React::default()),
    }
}

/// Whether `text` begins with `wanted`, does not, or may with more text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    Yes,
    No,
    Perhaps,
}

/// Compares the beginning of a text that may go on.
pub(crate) fn begins(text: &str, wanted: &str) -> Begins {
    let both = text.len().min(wanted.len());
    if text.as_bytes()[..both] != wanted.as_bytes()[..both] {
        Begins::No
    } else if both == wanted.len() {
        Begins::Yes
    } else {
        Begins::Perhaps
    }
}

/// The length of the white space a text begins with.
pub(crate) fn blank(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t', '\r', '\n']).len()
}

/// Whether white space and then one of these texts follows. An empty list asks for nothing.
/// At the end of the text `ended` answers.
pub(crate) fn follows(text: &str, wanted: &[impl AsRef<str>], ended: Option<bool>) -> Begins {
    let rest = &text[blank(text)..];
    if text.len() - rest.len() > LOOK_AHEAD {
        return Begins::No;
    }
    if rest.is_empty() {
        return match ended {
            Some(true) => Begins::Yes,
            Some(false) => Begins::No,
            None => Begins::Perhaps,
        };
    }
    let mut found = Begins::No;
    for wanted in wanted {
        match begins(rest, wanted.as_ref()) {
            Begins::Yes => return Begins::Yes,
            Begins::Perhaps if ended.is_none() => found = Begins::Perhaps,
            Begins::Perhaps | Begins::No => {}
        }
    }
    found
}
