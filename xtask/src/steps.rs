//! A chore's steps, each timed, and the summary at the end.

use std::time::Instant;

use crate::{Chore, say};

/// Runs steps one after the other and remembers how each went.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: Vec<Done>,
}

#[derive(Debug)]
struct Done {
    name: String,
    seconds: f64,
    problem: Option<String>,
}

impl Steps {
    /// Runs one step; whether it went well.
    #[expect(clippy::disallowed_methods, reason = "a step is timed by the real clock")]
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Chore) -> bool {
        say::line(format_args!("==> {name}"));
        let start = Instant::now();
        let problem = work().err();
        if let Some(problem) = &problem {
            say::problem(problem);
        }
        let seconds = start.elapsed().as_secs_f64();
        self.done.push(Done { name: name.to_owned(), seconds, problem });
        self.done.last().is_some_and(|step| step.problem.is_none())
    }

    /// Prints the summary.
    ///
    /// # Errors
    ///
    /// The names of the steps that failed.
    pub(crate) fn finish(self) -> Chore {
        let mut rows: Vec<Vec<String>> = Vec::new();
        for step in &self.done {
            let word = if step.problem.is_some() { "FAILED" } else { "ok" };
            rows.push(vec![step.name.clone(), format!("{:.1} s", step.seconds), word.to_owned()]);
        }
        let total: f64 = self.done.iter().map(|step| step.seconds).sum();
        rows.push(vec!["total".to_owned(), format!("{total:.1} s"), String::new()]);
        say::line(format_args!("\n{}", say::table(&rows)));
        let failed = self.done.iter().filter(|step| step.problem.is_some());
        let failed: Vec<String> = failed.map(|step| format!("`{}`", step.name)).collect();
        let passed = self.done.len() - failed.len();
        say::line(format_args!("steps: {passed} passed, {} failed", failed.len()));
        if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_step_fails_the_whole_and_is_named() {
        let mut steps = Steps::default();
        assert!(steps.step("first", || Ok(())));
        assert!(!steps.step("second", || Err("broken".to_owned())));
        assert!(steps.step("third", || Ok(())));
        assert_eq!(steps.finish(), Err("failed: `second`".to_owned()));
    }
}
