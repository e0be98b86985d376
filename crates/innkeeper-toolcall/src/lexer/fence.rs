//! A fenced block whose whole body is a call, or several.

use super::json::JsonCalls;
use super::{Begins, CALLS, Lexer, Notes, Read, Step, begins, blank};
use crate::event::Finish;
use crate::parse::End;

/// What opens and closes a block.
pub(crate) const FENCE: &str = "```";

/// The longest word behind the opening ticks: the name of a language.
const LANGUAGE: usize = 20;

/// The opening ticks have been read already.
#[derive(Debug, Default)]
pub(crate) struct Fence {
    /// The length of the first line, once it has ended.
    opened: bool,
    language: usize,
    before: usize,
    /// The calls with where each begins.
    calls: Vec<(usize, JsonCalls)>,
    /// Whether the last of them is still being read.
    open: bool,
}

impl Fence {
    fn first_line(&mut self, input: &str, at: &mut usize) -> Option<Step> {
        for (offset, letter) in input.char_indices() {
            match letter {
                '\n' => {
                    *at = offset + 1;
                    self.opened = true;
                    return None;
                }
                _ if letter.is_ascii_alphanumeric() || " \t\r_+-".contains(letter) => {
                    self.language += 1;
                }
                _ => return Some(Step::Fail { used: offset }),
            }
            if self.language > LANGUAGE {
                return Some(Step::Fail { used: offset });
            }
        }
        Some(self.more(input, input.len()))
    }

    fn between(&mut self, input: &str, at: &mut usize, end: Option<Finish>) -> Option<Step> {
        *at += blank(&input[*at..]);
        let rest = &input[*at..];
        if rest.is_empty() {
            let whole = end == Some(Finish::Stop) && !self.calls.is_empty();
            return Some(if whole { Step::Done { used: *at } } else { self.more(input, *at) });
        }
        if rest.starts_with(['{', '[']) && self.calls.len() < CALLS {
            self.calls.push((self.before + *at, JsonCalls::bare()));
            self.open = true;
            return None;
        }
        match begins(rest, FENCE) {
            Begins::Yes if !self.calls.is_empty() => Some(Step::Done { used: *at + FENCE.len() }),
            Begins::Perhaps if end.is_none() && !self.calls.is_empty() => {
                Some(self.more(input, *at))
            }
            Begins::Yes | Begins::Perhaps | Begins::No => Some(Step::Fail { used: *at }),
        }
    }

    fn more(&mut self, input: &str, at: usize) -> Step {
        self.before += at;
        Step::More { held: input.len() - at }
    }
}

impl Lexer for Fence {
    fn read(&mut self, input: &str, end: Option<Finish>, notes: &mut Notes) -> Step {
        let mut at = 0;
        if !self.opened
            && let Some(step) = self.first_line(input, &mut at)
        {
            return step;
        }
        loop {
            if self.open
                && let Some((_, call)) = self.calls.last_mut()
            {
                let mut found = Notes::default();
                let step = call.read(&input[at..], end, &mut found);
                // The call counts only when the whole block is one: its parts are not told before.
                if found.name.is_some() && notes.name.is_none() {
                    notes.name = found.name;
                    notes.at = at + found.at;
                    notes.listed = true;
                }
                match step {
                    Step::Done { used } => {
                        at += used;
                        self.open = false;
                    }
                    Step::More { held } => return self.more(input, input.len() - held),
                    Step::Fail { used } => return Step::Fail { used: at + used },
                }
            }
            if let Some(step) = self.between(input, &mut at, end) {
                return step;
            }
        }
    }

    fn calls<'t>(&self, text: &'t str, end: End) -> Read<'t> {
        let mut all = Vec::new();
        for (from, call) in &self.calls {
            all.extend(call.read_calls(text.get(*from..).unwrap_or_default(), end)?);
        }
        Ok(all)
    }

    fn meant(&self) -> bool {
        self.calls.iter().any(|(_, call)| call.meant())
    }
}
