//! The timed steps of a task, with a summary.

use std::time::Instant;

use crate::{TaskResult, output};

/// The results of the completed steps.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    completed: Vec<CompletedStep>,
}

#[derive(Debug)]
struct CompletedStep {
    name: String,
    seconds: f64,
    error: Option<String>,
}

impl Steps {
    /// Runs one step; returns whether the step succeeded.
    #[expect(clippy::disallowed_methods, reason = "the real clock measures a step")]
    pub(crate) fn run(&mut self, name: &str, work: impl FnOnce() -> TaskResult) -> bool {
        output::print_line(format_args!("==> {name}"));
        let start = Instant::now();
        let error = work().err();
        if let Some(problem) = &error {
            output::print_error(problem);
        }
        let seconds = start.elapsed().as_secs_f64();
        self.completed.push(CompletedStep { name: name.to_owned(), seconds, error });
        self.completed.last().is_some_and(|step| step.error.is_none())
    }

    /// Prints the summary.
    ///
    /// # Errors
    ///
    /// A step failed; the error names all failed steps.
    pub(crate) fn finish(self) -> TaskResult {
        let mut rows: Vec<Vec<String>> = Vec::new();
        for step in &self.completed {
            let status = if step.error.is_some() { "FAILED" } else { "ok" };
            rows.push(vec![step.name.clone(), format!("{:.1} s", step.seconds), status.to_owned()]);
        }
        let total: f64 = self.completed.iter().map(|step| step.seconds).sum();
        rows.push(vec!["total".to_owned(), format!("{total:.1} s"), String::new()]);
        output::print_line(format_args!("\n{}", output::format_table(&rows)));
        let failed = self.completed.iter().filter(|step| step.error.is_some());
        let failed: Vec<String> = failed.map(|step| format!("`{}`", step.name)).collect();
        let passed = self.completed.len() - failed.len();
        output::print_line(format_args!("steps: {passed} passed, {} failed", failed.len()));
        if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_step_fails_the_whole_and_is_named() {
        let mut steps = Steps::default();
        assert!(steps.run("first", || Ok(())));
        assert!(!steps.run("second", || Err("broken".to_owned())));
        assert!(steps.run("third", || Ok(())));
        assert_eq!(steps.finish(), Err("failed: `second`".to_owned()));
    }
}
