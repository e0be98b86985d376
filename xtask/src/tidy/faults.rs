//! Checks `docs/faults.md`: one row per fault, with existing tests.

use std::collections::BTreeMap;

use super::Violation;
use crate::repository::Repository;
use crate::requirements::tests_of;

const PAGE_PATH: &str = "docs/faults.md";

/// The heading of the second table, which names the tests of each fault.
const TESTS_HEADING: &str = "## Tests";

/// How many faults the catalogue has.
const FAULT_COUNT: usize = 100;

/// Checks that each number has one row in the catalogue and one in the table of tests, and that the
/// named tests exist.
pub(super) fn check_fault_rows(repository: &Repository) -> Vec<Violation> {
    let Some(text) = repository.text(PAGE_PATH) else {
        return vec![Violation::new(PAGE_PATH, 0, "is missing")];
    };
    let lines: Vec<&str> = text.lines().collect();
    let heading = lines.iter().position(|line| *line == TESTS_HEADING).unwrap_or(lines.len());
    let (catalogue, tests) = lines.split_at(heading);
    let mut violations = check_numbers(catalogue, "the catalogue");
    violations.extend(check_numbers(tests, "the table of tests"));
    for (at, line) in tests.iter().enumerate().filter(|(_, line)| row_number(line).is_some()) {
        let missing = named_tests(line).filter(|(path, test)| !test_exists(repository, path, test));
        violations.extend(missing.map(|(path, test)| {
            let text = format!("names `{path}: {test}`, which is not a test");
            Violation::new(PAGE_PATH, heading + at + 1, text)
        }));
    }
    violations
}

/// Checks that each number starts exactly one row of a table.
fn check_numbers(lines: &[&str], table: &str) -> Vec<Violation> {
    let mut rows: BTreeMap<usize, usize> = (1..=FAULT_COUNT).map(|number| (number, 0)).collect();
    for number in lines.iter().filter_map(|line| row_number(line)) {
        *rows.entry(number).or_default() += 1;
    }
    let wrong = rows.into_iter().filter_map(|(number, count)| {
        let expected = usize::from((1..=FAULT_COUNT).contains(&number));
        (count != expected).then(|| format!("has {count} rows for fault {number} in {table}"))
    });
    wrong.map(|text| Violation::new(PAGE_PATH, 0, text)).collect()
}

/// The number at the start of a row.
fn row_number(line: &str) -> Option<usize> {
    line.strip_prefix("| ")?.split_once(" |")?.0.parse().ok()
}

/// The tests that a row names: the end of a path with a test name, in back-ticks.
fn named_tests(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split('`').skip(1).step_by(2).filter_map(|literal| {
        let (path, test) = literal.split_once(": ")?;
        path.ends_with(".rs").then_some((path, test))
    })
}

fn test_exists(repository: &Repository, path: &str, test: &str) -> bool {
    let end = format!("/{path}");
    let mut sources = repository.sources().filter(|(path, _)| path.ends_with(&end));
    sources.any(|(_, source)| tests_of(source).contains(test))
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    const TEST_SOURCE: (&str, &str) =
        ("crates/a/tests/it/a.rs", "#[tokio::test]\nasync fn it_holds() {}\nfn helps() {}\n");

    fn page(tests: impl Fn(usize) -> String) -> String {
        let rows = |row: &dyn Fn(usize) -> String| -> String {
            (1..=FAULT_COUNT).map(|number| format!("| {number} | {} |\n", row(number))).collect()
        };
        format!("{}{TESTS_HEADING}\n{}", rows(&|_| "x".to_owned()), rows(&tests))
    }

    #[test]
    fn a_row_may_name_tests_and_nothing_else() {
        let valid = page(|_| "`key` and `it/a.rs: it_holds`".to_owned());
        assert!(violations(check_fault_rows, &[(PAGE_PATH, &valid), TEST_SOURCE]).is_empty());
        for missing in ["it/a.rs: helps", "it/b.rs: it_holds", "t/a.rs: it_holds"] {
            let bad = page(|_| format!("`{missing}`"));
            let found = violations(check_fault_rows, &[(PAGE_PATH, &bad), TEST_SOURCE]);
            assert_eq!(found.len(), FAULT_COUNT, "{missing}");
        }
    }

    #[test]
    fn a_missing_a_doubled_and_an_unknown_number_are_caught() {
        let valid = page(|_| "x".to_owned());
        for (from, to) in [("| 7 |", "| 8 |"), ("| 100 |", "| 101 |")] {
            let found = violations(check_fault_rows, &[(PAGE_PATH, &valid.replace(from, to))]);
            assert_eq!(found.len(), 4, "two numbers in two tables: {found:?}");
            let found = violations(check_fault_rows, &[(PAGE_PATH, &valid.replacen(from, to, 1))]);
            assert_eq!(found.len(), 2, "{found:?}");
        }
        assert_eq!(violations(check_fault_rows, &[]).len(), 1);
    }
}
