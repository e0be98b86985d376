//! A named text, the way from its bytes to lines and columns, and the problems found in it.

use std::fmt;
use std::sync::Arc;

use super::problem::{Position, Problem, Severity};

/// How many problems of one file are told; a file with more has one cause.
pub(super) const MAX_PROBLEMS: usize = 256;

/// Where a node begins: a byte of the text, or nothing for a configuration that is not a text.
pub(super) type Offset = Option<usize>;

/// The name of a configuration and where its lines begin.
#[derive(Debug)]
pub(super) struct Source {
    name: Arc<str>,
    lines: Vec<usize>,
    text: String,
    /// Characters before each block of the text, so that one long line costs no more than many.
    counted: Vec<usize>,
}

const BLOCK: usize = 1024;

impl Source {
    pub(super) fn of_text(name: &str, text: &str) -> Self {
        let lines =
            std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        let mut characters = 0;
        let counted = text.as_bytes().chunks(BLOCK).map(|block| {
            let before = characters;
            characters += starts(block);
            before
        });
        Self {
            name: name.into(),
            counted: counted.collect(),
            lines: lines.collect(),
            text: text.to_owned(),
        }
    }

    pub(super) fn of_value(name: &str) -> Self {
        Self { name: name.into(), lines: Vec::new(), text: String::new(), counted: Vec::new() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn position(&self, at: Offset) -> Position {
        let (line, column) = at.map_or((0, 0), |at| self.line_and_column(at));
        Position { source: Arc::clone(&self.name), line, column }
    }

    fn line_and_column(&self, at: usize) -> (u32, u32) {
        let line = self.lines.partition_point(|start| *start <= at);
        let start = line.checked_sub(1).map_or(0, |index| self.lines[index]);
        let column = self.characters_before(at) - self.characters_before(start) + 1;
        (narrow(line), narrow(column))
    }

    fn characters_before(&self, at: usize) -> usize {
        let at = at.min(self.text.len());
        let block = at / BLOCK;
        let counted = self.counted.get(block).copied();
        // `at` may be the end of the text, one past its last block.
        let (before, from) = match counted {
            Some(before) => (before, block * BLOCK),
            None => (self.counted.last().copied().unwrap_or(0), block.saturating_sub(1) * BLOCK),
        };
        before + starts(&self.text.as_bytes()[from..at])
    }
}

/// How many characters begin in `bytes`.
fn starts(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| (**byte & 0xC0) != 0x80).count()
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The problems of one source, up to a limit, each with its place.
#[derive(Debug)]
pub(super) struct Report {
    source: Source,
    problems: Vec<Problem>,
    left_out: usize,
    left_out_error: bool,
}

impl Report {
    pub(super) fn new(source: Source) -> Self {
        Self { source, problems: Vec::new(), left_out: 0, left_out_error: false }
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    pub(super) fn error(&mut self, at: Offset, key: impl fmt::Display, message: impl Into<String>) {
        let position = self.source.position(at);
        self.push(Problem::error(&position, key.to_string(), message));
    }

    pub(super) fn warning(
        &mut self,
        at: Offset,
        key: impl fmt::Display,
        message: impl Into<String>,
    ) {
        let position = self.source.position(at);
        self.push(Problem::warning(&position, key.to_string(), message));
    }

    /// Whether further problems are only counted, so that nobody need find words for them.
    pub(super) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    /// Adds a hint to the problem told last.
    pub(super) fn hint(&mut self, hint: impl Into<String>) {
        if self.left_out == 0
            && let Some(problem) = self.problems.last_mut()
        {
            problem.hint = Some(hint.into());
        }
    }

    pub(super) fn push(&mut self, problem: Problem) {
        if self.is_full() {
            self.count(problem.severity);
        } else {
            self.problems.push(problem);
        }
    }

    /// Notes a problem without telling it.
    pub(super) fn count(&mut self, severity: Severity) {
        self.left_out += 1;
        self.left_out_error |= severity == Severity::Error;
    }

    pub(super) fn finish(mut self) -> Vec<Problem> {
        if self.left_out > 0 {
            let more = format!("{} more problems are not listed", self.left_out);
            let severity = if self.left_out_error { Severity::Error } else { Severity::Warning };
            let last = Problem::error(&self.source.position(None), "", more);
            self.problems.push(Problem { severity, ..last });
        }
        self.problems
    }
}
