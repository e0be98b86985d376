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
    status: StepStatus,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum StepStatus {
    Passed,
    Failed,
    Skipped,
}

impl Steps {
    /// Runs one step; returns whether the step succeeded.
    #[expect(clippy::disallowed_methods, reason = "the real clock measures a step")]
    pub(crate) fn run(&mut self, name: &str, work: impl FnOnce() -> TaskResult) -> bool {
        output::print_line(format_args!("==> {name}"));
        let start = Instant::now();
        let status = match work() {
            Ok(()) => StepStatus::Passed,
            Err(problem) => {
                output::print_error(&problem);
                StepStatus::Failed
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        self.completed.push(CompletedStep { name: name.to_owned(), seconds, status });
        status == StepStatus::Passed
    }

    /// Records a step that this machine cannot run. The summary counts the step as skipped.
    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        output::print_line(format_args!("==> {name}\nSKIPPED: {reason}"));
        let status = StepStatus::Skipped;
        self.completed.push(CompletedStep { name: name.to_owned(), seconds: 0.0, status });
    }

    /// Prints the summary.
    ///
    /// # Errors
    ///
    /// A step failed; the error names all failed steps.
    pub(crate) fn finish(self) -> TaskResult {
        let mut rows: Vec<Vec<String>> = Vec::new();
        for step in &self.completed {
            let status = match step.status {
                StepStatus::Passed => "ok",
                StepStatus::Failed => "FAILED",
                StepStatus::Skipped => "SKIPPED",
            };
            rows.push(vec![step.name.clone(), format!("{:.1} s", step.seconds), status.to_owned()]);
        }
        let total: f64 = self.completed.iter().map(|step| step.seconds).sum();
        rows.push(vec!["total".to_owned(), format!("{total:.1} s"), String::new()]);
        output::print_line(format_args!("\n{}", output::format_table(&rows)));
        let names_with = |status: StepStatus| -> Vec<String> {
            let steps = self.completed.iter().filter(|step| step.status == status);
            steps.map(|step| format!("`{}`", step.name)).collect()
        };
        let failed = names_with(StepStatus::Failed);
        let (passed, skipped) =
            (names_with(StepStatus::Passed).len(), names_with(StepStatus::Skipped).len());
        output::print_line(format_args!(
            "steps: {passed} passed, {} failed, {skipped} skipped",
            failed.len()
        ));
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
        steps.skip("fourth", "no such machine");
        assert_eq!(steps.completed[3].status, StepStatus::Skipped);
        assert_eq!(steps.finish(), Err("failed: `second`".to_owned()));
    }
}
