//! Calls that say the name first: a name, a separator, JSON, perhaps a closing marker.

use std::ops::Range;

use super::scan::{Scan, Value};
use super::{Begins, Lexer, NAME, Notes, Read, Said, Step, begins, follows};
use crate::call::Arguments;
use crate::event::Finish;
use crate::parse::End;

/// The most text before the arguments: a name, a separator, an id, the first line of a fence.
const HEAD: usize = NAME + 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Head,
    Body,
    Tail,
}

/// `name SEPARATOR {…} CLOSE`.
#[derive(Debug)]
pub(crate) struct Named {
    /// `None` where the arguments follow the name at once, or `[ARGS]`.
    separator: Option<&'static str>,
    close: Option<&'static str>,
    phase: Phase,
    scan: Scan,
    before: usize,
    head: String,
    body: Range<usize>,
}

impl Named {
    pub(super) fn new(separator: &'static str, close: &'static str) -> Self {
        Self::with(Some(separator), Some(close))
    }

    /// `name[ARGS]{…}`, `name[CALL_ID]id[ARGS]{…}` or `name{…}`: Mistral's after its marker.
    pub(super) fn adjacent() -> Self {
        Self::with(None, None)
    }

    fn with(separator: Option<&'static str>, close: Option<&'static str>) -> Self {
        Self {
            separator,
            close,
            phase: Phase::Head,
            scan: Scan::new(close),
            before: 0,
            head: String::new(),
            body: 0..0,
        }
    }

    fn head(&mut self, input: &str, at: &mut usize, notes: &mut Notes) -> Option<Step> {
        for (offset, letter) in input.char_indices() {
            match self.close.map_or(Begins::No, |close| begins(&input[offset..], close)) {
                Begins::Perhaps => return Some(self.more(input, offset)),
                Begins::Yes => {
                    *at = offset;
                    self.body = self.before + offset..self.before + offset;
                    self.phase = Phase::Tail;
                    return None;
                }
                Begins::No => {}
            }
            let separated = self.separator.is_none_or(|separator| self.head.contains(separator));
            if separated && (letter == '{' || letter == '[' && self.separator.is_some()) {
                *at = offset;
                self.body.start = self.before + offset;
                self.phase = Phase::Body;
                notes.name = Some(self.name().to_owned());
                notes.at = offset;
                return None;
            }
            let blank = letter.is_ascii_whitespace() && self.head.contains('[');
            let odd = self.separator.is_none()
                && !(letter.is_ascii_alphanumeric() || "_-.:/[]".contains(letter) || blank);
            if odd || self.head.len() >= HEAD {
                return Some(Step::Fail { used: offset });
            }
            self.head.push(letter);
        }
        Some(self.more(input, input.len()))
    }

    fn body(&mut self, input: &str, at: &mut usize, notes: &mut Notes) -> Option<Step> {
        match self.scan.value(input, at, notes) {
            Value::More => Some(self.more(input, *at)),
            Value::Broken => Some(Step::Fail { used: *at }),
            Value::Ended => {
                self.body.end = self.before + *at;
                self.phase = Phase::Tail;
                None
            }
        }
    }

    fn tail(&mut self, input: &str, at: usize, end: Option<Finish>) -> Step {
        let Some(close) = self.close else { return Step::Done { used: at } };
        let rest = &input[at..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', '`']).len();
        if blank > super::LOOK_AHEAD {
            return Step::Done { used: at };
        }
        if blank == rest.len() {
            return match end {
                // The marker may be the token at which the server stops.
                Some(Finish::Stop) => Step::Done { used: input.len() },
                Some(Finish::Length | Finish::Interrupted) => self.more(input, at),
                None => self.more(input, at),
            };
        }
        match follows(&rest[blank..], &[close], end.map(|_| false)) {
            Begins::Yes => Step::Done { used: at + blank + close.len() },
            Begins::Perhaps => self.more(input, at),
            Begins::No => Step::Done { used: at },
        }
    }

    fn more(&mut self, input: &str, at: usize) -> Step {
        self.before += at;
        Step::More { held: input.len() - at }
    }

    /// The tool's name, out of what stands before the arguments.
    fn name(&self) -> &str {
        let (name, between) = match self.separator {
            Some(separator) => self.head.split_once(separator).unwrap_or((&self.head, "")),
            None => self.head.split_once('[').unwrap_or((&self.head, "")),
        };
        let name = name.trim();
        let name = name.strip_prefix("functions.").unwrap_or(name);
        // DeepSeek V3 puts the word before the separator and the name behind it.
        if name == "function" && self.separator.is_some() {
            return between.lines().next().unwrap_or_default().trim();
        }
        // Kimi counts its calls behind the name.
        match name.rsplit_once(':') {
            Some((name, count))
                if !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                name
            }
            Some(_) | None => name,
        }
    }
}

impl Lexer for Named {
    fn read(&mut self, input: &str, end: Option<Finish>, notes: &mut Notes) -> Step {
        let mut at = 0;
        loop {
            let step = match self.phase {
                Phase::Head => self.head(input, &mut at, notes),
                Phase::Body => self.body(input, &mut at, notes),
                Phase::Tail => Some(self.tail(input, at, end)),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn calls<'t>(&self, text: &'t str, _end: End) -> Read<'t> {
        let arguments = text.get(self.body.clone()).unwrap_or_default().trim();
        let arguments = if arguments.is_empty() { "{}" } else { arguments };
        Ok(vec![Said::new(self.name(), Arguments::Text(arguments))])
    }

    fn stopped(&mut self, held: usize) -> bool {
        if self.phase == Phase::Body {
            self.body.end = self.before + held;
        }
        self.phase != Phase::Head
    }

    fn meant(&self) -> bool {
        self.phase != Phase::Head
    }
}
