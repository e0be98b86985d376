//! `tidy`: the house rules as tests. Each rule is a function over the repository's texts.

mod documents;
mod edges;
mod faults;
mod files;
mod modules;
mod purity;

use std::fmt;

use crate::repository::Repository;
use crate::{Chore, say};

/// A place where a rule is broken.
#[derive(Debug, PartialEq)]
struct Offence {
    path: String,
    /// From one; zero where the whole file is meant.
    line: usize,
    what: String,
}

impl Offence {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.what),
            line => write!(out, "{}:{line}: {}", self.path, self.what),
        }
    }
}

type Rule = fn(&Repository) -> Vec<Offence>;

const RULES: &[Rule] = &[
    files::first_lines,
    files::lengths,
    files::forbidden_words,
    files::unfinished_business,
    files::foreign_names,
    edges::crate_edges,
    purity::pure_rooms,
    modules::every_file_is_declared,
    modules::one_test_binary_each,
    documents::the_map_is_true,
    documents::decisions_are_numbered,
    faults::every_fault_has_its_row,
];

/// Applies every rule.
///
/// # Errors
///
/// Any offence; each is printed.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    if let Some(argument) = arguments.first() {
        return Err(format!("`tidy` takes no `{argument}`"));
    }
    let repository = Repository::read()?;
    let offences: Vec<Offence> = RULES.iter().flat_map(|rule| rule(&repository)).collect();
    for offence in &offences {
        say::line(offence);
    }
    let files = repository.texts().count();
    match offences.len() {
        0 => {
            say::line(format_args!("{} rules kept in {files} files", RULES.len()));
            Ok(())
        }
        count => Err(format!("{count} offences against the house rules")),
    }
}

/// What a rule says of planted files.
#[cfg(test)]
fn offences(rule: Rule, files: &[(&str, &str)]) -> Vec<String> {
    let mut repository = Repository::default();
    for (path, text) in files {
        repository.insert(path, text);
    }
    rule(&repository).iter().map(Offence::to_string).collect()
}
