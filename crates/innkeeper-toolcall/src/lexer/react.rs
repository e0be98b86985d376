//! `Action: name` and, on the next line, `Action Input: {…}`.

use super::scan::{Scan, Value};
use super::{Begins, LOOK_AHEAD, Lexer, NAME, Notes, Read, Said, Step, begins, blank};
use crate::call::Arguments;
use crate::event::Finish;
use crate::parse::End;

const INPUT: &str = "Action Input:";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Name,
    Input,
    Body,
}

/// `Action:` has been read already.
#[derive(Debug, Default)]
pub(crate) struct React {
    phase: Phase,
    name: String,
    scan: Option<Scan>,
    before: usize,
    body: usize,
}

impl React {
    fn name(&mut self, input: &str, at: &mut usize, notes: &mut Notes) -> Option<Step> {
        for (offset, letter) in input.char_indices() {
            if letter == '\n' {
                *at = offset;
                self.name = self.name.trim().trim_matches('`').to_owned();
                notes.name = Some(self.name.clone());
                notes.at = offset;
                self.phase = Phase::Input;
                return None;
            }
            if self.name.len() >= NAME {
                return Some(Step::Fail { used: offset });
            }
            self.name.push(letter);
        }
        Some(self.more(input, input.len()))
    }

    fn input(&mut self, input: &str, at: &mut usize) -> Option<Step> {
        let skipped = blank(&input[*at..]);
        let rest = &input[*at + skipped..];
        match begins(rest, INPUT) {
            _ if skipped > LOOK_AHEAD => return Some(Step::Fail { used: *at }),
            Begins::No => return Some(Step::Fail { used: *at }),
            Begins::Perhaps => return Some(self.more(input, *at)),
            Begins::Yes => {}
        }
        let behind = blank(&rest[INPUT.len()..]);
        if behind > LOOK_AHEAD {
            return Some(Step::Fail { used: *at });
        }
        let after = skipped + INPUT.len() + behind;
        match input.as_bytes()[*at + after..].first() {
            None => Some(self.more(input, *at)),
            Some(b'{') => {
                *at += after;
                self.body = self.before + *at;
                self.scan = Some(Scan::new(None));
                self.phase = Phase::Body;
                None
            }
            Some(_) => Some(Step::Fail { used: *at }),
        }
    }

    fn body(&mut self, input: &str, at: &mut usize, notes: &mut Notes) -> Step {
        let Some(scan) = &mut self.scan else { return Step::Fail { used: *at } };
        match scan.value(input, at, notes) {
            Value::More => self.more(input, *at),
            Value::Broken => Step::Fail { used: *at },
            Value::Ended => Step::Done { used: *at },
        }
    }

    fn more(&mut self, input: &str, at: usize) -> Step {
        self.before += at;
        Step::More { held: input.len() - at }
    }
}

impl Lexer for React {
    fn read(&mut self, input: &str, _end: Option<Finish>, notes: &mut Notes) -> Step {
        let mut at = 0;
        loop {
            let step = match self.phase {
                Phase::Name => self.name(input, &mut at, notes),
                Phase::Input => self.input(input, &mut at),
                Phase::Body => Some(self.body(input, &mut at, notes)),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn calls<'t>(&self, text: &'t str, _end: End) -> Read<'t> {
        let arguments = text.get(self.body..).unwrap_or_default();
        Ok(vec![Said::new(self.name.clone(), Arguments::Text(arguments))])
    }

    fn stopped(&mut self, _held: usize) -> bool {
        self.phase == Phase::Body
    }

    fn meant(&self) -> bool {
        self.phase == Phase::Body
    }
}
