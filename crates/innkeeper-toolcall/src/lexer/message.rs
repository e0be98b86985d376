//! The body of a Harmony message to a tool: JSON, up to the token that ends the message.

use super::scan::{Scan, Value};
use super::{Begins, Lexer, Notes, Read, Said, Step, begins, blank};
use crate::call::Arguments;
use crate::event::Finish;
use crate::parse::End;

/// Tokens one of which ends a message.
pub(crate) const ENDS: &[&str] = &["<|call|>", "<|end|>", "<|return|>", "<|start|>", "<|channel|>"];

/// A message whose header named this tool.
#[derive(Debug)]
pub(crate) struct Message {
    name: String,
    scan: Option<Scan>,
    /// Whether the body is something else than JSON.
    other: bool,
    told: bool,
}

impl Message {
    pub(crate) fn new(recipient: &str) -> Self {
        let name = recipient.strip_prefix("functions.").unwrap_or(recipient).to_owned();
        Self { name, scan: None, other: false, told: false }
    }

    /// A body that is no JSON goes on to the first token that ends it.
    fn other(input: &str, end: Option<Finish>) -> Step {
        let mut at = 0;
        while let Some(hit) = input[at..].find('<') {
            at += hit;
            for token in ENDS {
                match begins(&input[at..], token) {
                    Begins::Yes => return Step::Done { used: at },
                    Begins::Perhaps if end.is_none() => {
                        return Step::More { held: input.len() - at };
                    }
                    Begins::Perhaps | Begins::No => {}
                }
            }
            at += 1;
        }
        match end {
            Some(Finish::Stop) => Step::Done { used: input.len() },
            Some(Finish::Length | Finish::Interrupted) | None => Step::More { held: 0 },
        }
    }

    fn body(&mut self, input: &str, at: &mut usize, notes: &mut Notes) -> Step {
        let Some(scan) = &mut self.scan else { return Step::Fail { used: *at } };
        match scan.value(input, at, notes) {
            Value::More => Step::More { held: input.len() - *at },
            Value::Broken => Step::Fail { used: *at },
            Value::Ended => Step::Done { used: *at },
        }
    }
}

impl Lexer for Message {
    fn read(&mut self, input: &str, end: Option<Finish>, notes: &mut Notes) -> Step {
        if !self.told {
            self.told = true;
            notes.name = Some(self.name.clone());
        }
        if self.other {
            return Self::other(input, end);
        }
        let mut at = 0;
        if self.scan.is_none() {
            at = blank(input);
            match input.as_bytes().get(at) {
                None => return Step::More { held: 0 },
                Some(b'{') => self.scan = Some(Scan::new(Some("<|"))),
                Some(_) => {
                    self.other = true;
                    return Self::other(input, end);
                }
            }
        }
        self.body(input, &mut at, notes)
    }

    fn calls<'t>(&self, text: &'t str, _end: End) -> Read<'t> {
        Ok(vec![Said::new(self.name.clone(), Arguments::Text(text.trim()))])
    }

    fn stopped(&mut self, _held: usize) -> bool {
        self.scan.is_some()
    }
}
