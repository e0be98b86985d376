//! A named text with line and column lookup, and its diagnostics.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Position, Severity};

/// Maximum number of problems reported for one file: more problems have a common cause.
pub(crate) const MAX_DIAGNOSTICS: usize = 256;

/// Byte offset of a node in the text; `None` for a configuration that is not a text.
pub(crate) type SourceOffset = Option<usize>;

/// The name of a configuration and the offsets of its lines.
#[derive(Debug)]
pub(crate) struct SourceText {
    name: Arc<str>,
    lines: Vec<usize>,
    text: String,
    /// Number of characters before each block of the text, which bounds the cost of a very long
    /// line.
    chars_before_block: Vec<usize>,
}

const BLOCK_BYTES: usize = 1024;

impl SourceText {
    pub(crate) fn from_text(name: &str, text: &str) -> Self {
        let lines =
            std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        let mut characters = 0;
        let counted = text.as_bytes().chunks(BLOCK_BYTES).map(|block| {
            let before = characters;
            characters += count_chars(block);
            before
        });
        Self {
            name: name.into(),
            chars_before_block: counted.collect(),
            lines: lines.collect(),
            text: text.to_owned(),
        }
    }

    pub(crate) fn without_text(name: &str) -> Self {
        Self {
            name: name.into(),
            lines: Vec::new(),
            text: String::new(),
            chars_before_block: Vec::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn position(&self, at: SourceOffset) -> Position {
        let (line, column) = at.map_or((0, 0), |at| self.line_and_column(at));
        Position { source: Arc::clone(&self.name), line, column }
    }

    fn line_and_column(&self, at: usize) -> (u32, u32) {
        let line = self.lines.partition_point(|start| *start <= at);
        let start = line.checked_sub(1).map_or(0, |index| self.lines[index]);
        let column = self.characters_before(at) - self.characters_before(start) + 1;
        (to_u32_saturating(line), to_u32_saturating(column))
    }

    fn characters_before(&self, at: usize) -> usize {
        let at = at.min(self.text.len());
        let block = at / BLOCK_BYTES;
        let counted = self.chars_before_block.get(block).copied();
        // `at` may be the end of the text, one past the last block.
        let (before, from) = match counted {
            Some(before) => (before, block * BLOCK_BYTES),
            None => (
                self.chars_before_block.last().copied().unwrap_or(0),
                block.saturating_sub(1) * BLOCK_BYTES,
            ),
        };
        before + count_chars(&self.text.as_bytes()[from..at])
    }
}

/// Returns the number of characters that start in `bytes`.
fn count_chars(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| (**byte & 0xC0) != 0x80).count()
}

fn to_u32_saturating(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A problem with the index of the server entry that the problem lies in; `None` for a problem of
/// the file.
#[derive(Debug)]
pub(crate) struct LocatedProblem {
    pub(crate) entry_index: Option<usize>,
    pub(crate) problem: Diagnostic,
}

/// The problems of one source, up to a limit, with positions.
#[derive(Debug)]
pub(crate) struct Diagnostics {
    source: SourceText,
    located_problems: Vec<LocatedProblem>,
    /// The server entry that new problems lie in.
    current_entry: Option<usize>,
    omitted: usize,
    omitted_errors: HashSet<Option<usize>>,
}

impl Diagnostics {
    pub(crate) fn new(source: SourceText) -> Self {
        Self {
            source,
            located_problems: Vec::new(),
            current_entry: None,
            omitted: 0,
            omitted_errors: HashSet::new(),
        }
    }

    pub(crate) fn source(&self) -> &SourceText {
        &self.source
    }

    /// Sets the server entry that new problems lie in; `None` for the file.
    pub(crate) fn set_entry(&mut self, entry_index: Option<usize>) {
        self.current_entry = entry_index;
    }

    /// Assigns each problem of the file to the entry whose key contains the problem's key.
    pub(crate) fn assign_to_entries(&mut self, entry_paths: &[&str]) {
        let of_file =
            self.located_problems.iter_mut().filter(|located| located.entry_index.is_none());
        for LocatedProblem { entry_index, problem } in of_file {
            // A problem of the entry's own key, such as a duplicate name, concerns the file.
            *entry_index = entry_paths.iter().position(|path| {
                problem.key.strip_prefix(*path).is_some_and(|rest| rest.starts_with(['.', '[']))
            });
        }
    }

    pub(crate) fn error(
        &mut self,
        at: SourceOffset,
        key: impl fmt::Display,
        message: impl Into<String>,
    ) {
        let position = self.source.position(at);
        self.push(Diagnostic::error(&position, key.to_string(), message));
    }

    pub(crate) fn warning(
        &mut self,
        at: SourceOffset,
        key: impl fmt::Display,
        message: impl Into<String>,
    ) {
        let position = self.source.position(at);
        self.push(Diagnostic::warning(&position, key.to_string(), message));
    }

    /// Returns whether the limit is reached, so that callers can skip building messages.
    pub(crate) fn is_full(&self) -> bool {
        self.located_problems.len() >= MAX_DIAGNOSTICS
    }

    /// Adds a hint to the last problem.
    pub(crate) fn hint(&mut self, hint: impl Into<String>) {
        if self.omitted == 0
            && let Some(LocatedProblem { problem, .. }) = self.located_problems.last_mut()
        {
            problem.hint = Some(hint.into());
        }
    }

    pub(crate) fn push(&mut self, problem: Diagnostic) {
        if self.is_full() {
            self.count_omitted(problem.severity);
        } else {
            self.located_problems.push(LocatedProblem { entry_index: self.current_entry, problem });
        }
    }

    /// Counts a problem without a message.
    pub(crate) fn count_omitted(&mut self, severity: Severity) {
        self.omitted += 1;
        if severity == Severity::Error {
            self.omitted_errors.insert(self.current_entry);
        }
    }

    /// Returns whether an error of this entry, or of the file, was reported or omitted.
    pub(crate) fn has_error(&self, entry: Option<usize>) -> bool {
        self.omitted_errors.contains(&entry)
            || self
                .located_problems
                .iter()
                .any(|located| located.entry_index == entry && located.problem.is_error())
    }

    pub(crate) fn finish(mut self) -> Vec<LocatedProblem> {
        if self.omitted > 0 {
            let more = format!("{} more problems omitted", self.omitted);
            let severity =
                if self.omitted_errors.is_empty() { Severity::Warning } else { Severity::Error };
            let last = Diagnostic::error(&self.source.position(None), "", more);
            let problem = Diagnostic { severity, ..last };
            self.located_problems.push(LocatedProblem { entry_index: None, problem });
        }
        self.located_problems
    }
}
