//! Two markers behind which different formats stand, told apart by the first letters.

use super::json::JsonCalls;
use super::named::Named;
use super::parameters::Parameters;
use super::{Begins, Lexer, Notes, Read, Step, begins, blank};
use crate::event::Finish;
use crate::parse::End;

/// What stands behind a marker: white space so far, or one of these.
enum Behind {
    Unknown,
    Json(JsonCalls),
    Named(Named),
    Parameters(Box<Parameters>),
}

impl Behind {
    fn lexer(&mut self) -> Option<&mut dyn Lexer> {
        match self {
            Self::Unknown => None,
            Self::Json(lexer) => Some(lexer),
            Self::Named(lexer) => Some(lexer),
            Self::Parameters(lexer) => Some(lexer.as_mut()),
        }
    }
}

/// Reads the white space, lets `choose` look at what follows, and hands everything on to it.
struct Switch {
    behind: Behind,
    blank: usize,
}

impl Switch {
    const fn new() -> Self {
        Self { behind: Behind::Unknown, blank: 0 }
    }

    /// `choose` gives `None` where it needs more text.
    fn read(
        &mut self,
        input: &str,
        end: Option<Finish>,
        notes: &mut Notes,
        choose: impl FnOnce(&str) -> Option<Behind>,
    ) -> Step {
        let mut at = 0;
        if self.behind.lexer().is_none() {
            at = blank(input);
            self.blank += at;
            if at == input.len() {
                return Step::More { held: 0 };
            }
            match choose(&input[at..]) {
                Some(behind) => self.behind = behind,
                None => return Step::More { held: input.len() - at },
            }
        }
        let Some(lexer) = self.behind.lexer() else { return Step::Fail { used: at } };
        match lexer.read(&input[at..], end, notes) {
            Step::More { held } => {
                shift(notes, at);
                Step::More { held }
            }
            Step::Done { used } => {
                shift(notes, at);
                Step::Done { used: at + used }
            }
            Step::Fail { used } => {
                shift(notes, at);
                Step::Fail { used: at + used }
            }
        }
    }

    fn calls<'t>(&self, text: &'t str, end: End) -> Read<'t> {
        let text = text.get(self.blank..).unwrap_or_default();
        match &self.behind {
            Behind::Unknown => Ok(Vec::new()),
            Behind::Json(lexer) => lexer.calls(text, end),
            Behind::Named(lexer) => lexer.calls(text, end),
            Behind::Parameters(lexer) => lexer.calls(text, end),
        }
    }
}

impl Switch {
    fn meant(&self) -> bool {
        match &self.behind {
            Behind::Unknown => false,
            Behind::Json(lexer) => lexer.meant(),
            Behind::Named(lexer) => lexer.meant(),
            Behind::Parameters(lexer) => lexer.meant(),
        }
    }
}

fn shift(notes: &mut Notes, by: usize) {
    notes.at += by;
    notes.fragment = notes.fragment.take().map(|part| part.start + by..part.end + by);
}

/// What stands behind `<tool_call>`.
pub(crate) struct ToolCall(Switch);

impl Default for ToolCall {
    fn default() -> Self {
        Self(Switch::new())
    }
}

impl Lexer for ToolCall {
    fn read(&mut self, input: &str, end: Option<Finish>, notes: &mut Notes) -> Step {
        self.0.read(input, end, notes, |rest| match begins(rest, "<function=") {
            _ if rest.starts_with(['{', '[', '`']) => {
                Some(Behind::Json(JsonCalls::tagged("</tool_call>")))
            }
            Begins::Yes => Some(Behind::Parameters(Box::new(Parameters::tagged_function()))),
            Begins::Perhaps => None,
            Begins::No => Some(Behind::Parameters(Box::new(Parameters::glm()))),
        })
    }

    fn calls<'t>(&self, text: &'t str, end: End) -> Read<'t> {
        self.0.calls(text, end)
    }

    fn stopped(&mut self, held: usize) -> bool {
        self.0.behind.lexer().is_some_and(|lexer| lexer.stopped(held))
    }

    fn meant(&self) -> bool {
        self.0.meant()
    }
}

/// What stands behind `[TOOL_CALLS]`.
pub(crate) struct Mistral(Switch);

impl Default for Mistral {
    fn default() -> Self {
        Self(Switch::new())
    }
}

impl Lexer for Mistral {
    fn read(&mut self, input: &str, end: Option<Finish>, notes: &mut Notes) -> Step {
        self.0.read(input, end, notes, |rest| {
            Some(match rest.starts_with(['{', '[']) {
                true => Behind::Json(JsonCalls::separated()),
                false => Behind::Named(Named::adjacent()),
            })
        })
    }

    fn calls<'t>(&self, text: &'t str, end: End) -> Read<'t> {
        self.0.calls(text, end)
    }

    fn stopped(&mut self, held: usize) -> bool {
        self.0.behind.lexer().is_some_and(|lexer| lexer.stopped(held))
    }

    fn meant(&self) -> bool {
        self.0.meant()
    }
}
