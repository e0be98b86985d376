//! `tidy`: the project's own lints as functions over the repository's texts.

mod api;
mod attacks;
mod counts;
mod dependencies;
mod documents;
mod facade;
mod faults;
mod files;
mod layers;
mod links;
mod listed;
mod modules;
mod sans_io;

use std::fmt;

pub(crate) use layers::is_excluded;

use crate::repository::Repository;
use crate::{TaskResult, output};

/// A violation of a rule.
#[derive(Debug, PartialEq)]
struct Violation {
    path: String,
    /// The line number; zero for the whole file.
    line: usize,
    message: String,
}

impl Violation {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.message),
            line => write!(out, "{}:{line}: {}", self.path, self.message),
        }
    }
}

type TidyRule = fn(&Repository) -> Vec<Violation>;

const RULES: &[TidyRule] = &[
    files::check_first_lines,
    files::check_lengths,
    files::check_forbidden_words,
    files::check_unfinished_markers,
    files::check_machine_names,
    dependencies::check_crate_dependencies,
    layers::check_module_layers,
    counts::check_counts,
    facade::check_facade,
    sans_io::check_sans_io,
    modules::check_files_declared,
    modules::check_single_test_binary,
    documents::check_module_map,
    documents::check_decision_numbers,
    links::check_links,
    listed::check_command_table,
    listed::check_claims,
    listed::check_fuzz_table,
    listed::check_ignore_reasons,
    faults::check_fault_rows,
    api::check_api,
    attacks::check_attacks,
];

/// Applies every rule and prints the violations.
///
/// # Errors
///
/// A file violates a rule.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    if let Some(argument) = arguments.first() {
        return Err(format!("`tidy` takes no `{argument}`"));
    }
    let repository = Repository::load()?;
    let violations = check(&repository)?;
    for offence in &violations {
        output::print_line(offence);
    }
    let files = repository.texts().count();
    match violations.len() {
        0 => {
            output::print_line(format_args!("{} rules checked in {files} files", RULES.len()));
            Ok(())
        }
        count => Err(format!("{count} violations")),
    }
}

/// Applies every rule on a thread of its own.
fn check(repository: &Repository) -> TaskResult<Vec<Violation>> {
    std::thread::scope(|scope| {
        let checks: Vec<_> = RULES.iter().map(|rule| scope.spawn(|| rule(repository))).collect();
        let mut violations = Vec::new();
        for check in checks {
            violations.extend(check.join().map_err(|_| "a rule panicked".to_owned())?);
        }
        Ok(violations)
    })
}

/// The violations of a rule in the given files.
#[cfg(test)]
fn violations(rule: TidyRule, files: &[(&str, &str)]) -> Vec<String> {
    let mut repository = Repository::default();
    for (path, text) in files {
        repository.insert(path, text);
    }
    rule(&repository).iter().map(Violation::to_string).collect()
}
