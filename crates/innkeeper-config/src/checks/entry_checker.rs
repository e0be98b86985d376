//! The context for the problems of one entry.

use crate::diagnostic::Severity;
use crate::form::document::ServerEntry;
use crate::text::key_location::{PathSegment, locate};
use crate::text::source_text::Diagnostics;
use crate::variables::env_file::EnvFile;
use crate::variables::expand::{self, VariableSource as _};
use crate::variables::literal::{self, LiteralKind};
use crate::variables::scope::VariableScope;

/// The context for problems of one entry.
pub(crate) struct EntryChecker<'a> {
    pub(crate) entry: &'a ServerEntry,
    pub(crate) scope: &'a VariableScope<'a>,
    pub(crate) report: &'a mut Diagnostics,
    pub(crate) env_file: Option<EnvFile>,
}

impl EntryChecker<'_> {
    /// Returns whether the key is present, with any value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.entry.node.get(name).is_some()
    }

    pub(crate) fn error(&mut self, segments: &[PathSegment<'_>], message: impl Into<String>) {
        if self.report.is_full() {
            return self.report.count_omitted(Severity::Error);
        }
        let location = locate(&self.entry.node, &self.entry.path, segments);
        self.report.error(location.at, location.key, message);
    }

    pub(crate) fn warning(&mut self, segments: &[PathSegment<'_>], message: impl Into<String>) {
        if self.report.is_full() {
            return self.report.count_omitted(Severity::Warning);
        }
        let location = locate(&self.entry.node, &self.entry.path, segments);
        self.report.warning(location.at, location.key, message);
    }

    /// Expands the variables of one value. Returns `None` after an error, including a NUL in the
    /// result: no operating system accepts NUL in an argument or variable.
    pub(crate) fn expand(
        &mut self,
        segments: &[PathSegment<'_>],
        text: &str,
    ) -> Option<expand::Expansion> {
        self.check_literal(segments, text);
        match expand::expand(text, self.scope) {
            Ok(replaced) if replaced.value.contains('\0') => {
                self.error(segments, "contains a NUL character");
                None
            }
            Ok(replaced) => Some(replaced),
            Err(failures) => {
                for failure in failures {
                    self.error(segments, failure.message());
                    if let Some(hint) = failure.hint(self.scope) {
                        self.report.hint(hint);
                    }
                }
                None
            }
        }
    }

    /// Reports a text that fails later, such as a placeholder.
    fn check_literal(&mut self, segments: &[PathSegment<'_>], text: &str) {
        let key = segments.first().map(PathSegment::key_name).unwrap_or_default();
        let Some(kind) = LiteralKind::for_key(key) else { return };
        let scope = self.scope;
        let Some(problem) =
            literal::find_problem(kind, text, |name| scope.variable(name).is_some())
        else {
            return;
        };
        match problem.is_error {
            true => self.error(segments, problem.message),
            false => self.warning(segments, problem.message),
        }
        self.report.hint(problem.hint);
    }
}
