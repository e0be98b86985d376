//! `attacks`: the page of all attacks in the tests, with the invariant that each test verifies.

mod annotation;
mod table;

use std::fs;

use crate::program::{relative_path, repository_root};
use crate::repository::Repository;
use crate::{TaskResult, output};

use annotation::{Surface, find_attacks};

/// The generated page.
pub(crate) const PAGE_PATH: &str = "docs/attacks.md";

/// Counts the attacks of each surface and compares the page with the tests; `--write` writes the
/// page.
///
/// # Errors
///
/// An annotation is invalid, the page differs from the annotations, or the page cannot be written.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let writes = match arguments {
        [] => false,
        ["--write"] => true,
        [other, ..] => return Err(format!("`attacks` takes no `{other}`")),
    };
    let mut repository = Repository::load()?;
    let (attacks, problems) = find_attacks(&repository);
    if writes && problems.is_empty() {
        let text = table::to_markdown(&attacks);
        let file = repository_root().join(PAGE_PATH);
        fs::write(&file, &text).map_err(|error| format!("`{}`: {error}", relative_path(&file)))?;
        repository.insert(PAGE_PATH, &text);
    }
    for surface in Surface::ALL {
        let count = attacks.iter().filter(|attack| attack.surface == surface).count();
        output::print_line(format_args!("{count:4}  {}", surface.heading()));
    }
    output::print_line(format_args!("{:4}  attacks", attacks.len()));
    let problems = find_problems(&repository);
    for (path, line, message) in &problems {
        output::print_error(&format!("{path}:{line}: {message}"));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(format!("{} problems with the attacks", problems.len()))
    }
}

/// Returns the path, the line and the message of each invalid annotation, and of a page that
/// differs from the annotations.
pub(crate) fn find_problems(repository: &Repository) -> Vec<(String, usize, String)> {
    let (attacks, mut problems) = find_attacks(repository);
    // The page cannot show an invalid annotation, so a difference has no meaning before a repair.
    if problems.is_empty() {
        let expected = table::to_markdown(&attacks);
        let text = repository.text(PAGE_PATH).unwrap_or_default();
        if let Some(line) = first_difference(text, &expected) {
            let message = "differs from the tests; run `cargo xtask attacks --write`";
            problems.push((PAGE_PATH.to_owned(), line, message.to_owned()));
        }
    }
    problems
}

/// The number of the first line that differs.
fn first_difference(text: &str, expected: &str) -> Option<usize> {
    if text == expected {
        return None;
    }
    let equal = text.lines().zip(expected.lines()).take_while(|(line, other)| line == other);
    Some(equal.count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARCHITECTURE: &str = "## Invariants\n\n1. **No orphan.** Text.\n\n## Next\n";
    const TEST: &str = "/// Attack: processes | a fork bomb | the kill ends it | No orphan\n#[test]\nfn ends() {}\n";

    fn problems(test: &str, page: &str) -> Vec<String> {
        let mut repository = Repository::default();
        repository.insert("ARCHITECTURE.md", ARCHITECTURE);
        repository.insert("crates/a/src/tests.rs", test);
        repository.insert(PAGE_PATH, page);
        let problems = find_problems(&repository);
        problems.iter().map(|(path, line, text)| format!("{path}:{line}: {text}")).collect()
    }

    fn page(test: &str) -> String {
        let mut repository = Repository::default();
        repository.insert("ARCHITECTURE.md", ARCHITECTURE);
        repository.insert("crates/a/src/tests.rs", test);
        let (attacks, problems) = find_attacks(&repository);
        assert_eq!(problems, []);
        table::to_markdown(&attacks)
    }

    #[test]
    fn the_page_is_what_the_tests_say() {
        let written = page(TEST);
        assert_eq!(problems(TEST, &written), Vec::<String>::new());
        let differs = "differs from the tests; run `cargo xtask attacks --write`";
        let changed = TEST.replace("a fork bomb", "a fork loop");
        let line = written.lines().position(|line| line.contains("fork bomb")).unwrap() + 1;
        assert_eq!(problems(&changed, &written), [format!("{PAGE_PATH}:{line}: {differs}")]);
        assert_eq!(problems(TEST, ""), [format!("{PAGE_PATH}:1: {differs}")]);
        let longer = format!("{written}more\n");
        assert_eq!(problems(TEST, &longer).len(), 1);
    }

    #[test]
    fn an_invalid_annotation_is_the_problem_and_not_the_page() {
        let unknown = TEST.replace("No orphan", "No orphans");
        let expected = "crates/a/src/tests.rs:1: ARCHITECTURE.md has no invariant `No orphans`";
        assert_eq!(problems(&unknown, ""), [expected]);
    }
}
