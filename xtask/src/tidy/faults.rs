//! The rule about `docs/faults.md`: every fault of the catalogue has one row, every test it names exists.

use std::collections::BTreeMap;

use super::Offence;
use crate::repository::Repository;
use crate::rows::tests_of;

const TABLE: &str = "docs/faults.md";

/// How many faults the catalogue has.
const FAULTS: usize = 100;

/// The table has each number once, and its tests are in the tree.
pub(super) fn every_fault_has_its_row(repository: &Repository) -> Vec<Offence> {
    let Some(text) = repository.text(TABLE) else {
        return vec![Offence::new(TABLE, 0, "is missing")];
    };
    let mut offences = Vec::new();
    let mut rows: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let Some(number) = number(line) else { continue };
        *rows.entry(number).or_default() += 1;
        let missing = named(line).filter(|(path, test)| !exists(repository, path, test));
        offences.extend(missing.map(|(path, test)| {
            Offence::new(TABLE, at + 1, format!("names `{path}: {test}`, which is no test"))
        }));
    }
    let wrong = (1..=FAULTS).filter(|number| rows.get(number) != Some(&1));
    offences.extend(wrong.map(|number| {
        let count = rows.get(&number).unwrap_or(&0);
        Offence::new(TABLE, 0, format!("has {count} rows for fault {number}"))
    }));
    let strangers = rows.keys().filter(|number| !(1..=FAULTS).contains(*number));
    offences.extend(
        strangers.map(|number| Offence::new(TABLE, 0, format!("{number} is no number of a fault"))),
    );
    offences
}

/// The number a row begins with.
fn number(line: &str) -> Option<usize> {
    line.strip_prefix("| ")?.split_once(" |")?.0.parse().ok()
}

/// The tests a row names: the end of a path and a name between back-ticks.
fn named(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split('`').skip(1).step_by(2).filter_map(|literal| {
        let (path, test) = literal.split_once(": ")?;
        path.ends_with(".rs").then_some((path, test))
    })
}

fn exists(repository: &Repository, path: &str, test: &str) -> bool {
    let end = format!("/{path}");
    let mut sources = repository.sources().filter(|(path, _)| path.ends_with(&end));
    sources.any(|(_, source)| tests_of(source).contains(test))
}

#[cfg(test)]
mod tests {
    use super::super::offences;
    use super::*;

    const SOURCE: (&str, &str) =
        ("crates/a/tests/it/a.rs", "#[tokio::test]\nasync fn it_holds() {}\nfn helps() {}\n");

    fn table(row: impl Fn(usize) -> String) -> String {
        (1..=FAULTS).map(|number| format!("| {number} | {} |\n", row(number))).collect()
    }

    #[test]
    fn a_row_may_name_tests_and_nothing_else() {
        let good = table(|_| "`key` and `it/a.rs: it_holds`".to_owned());
        assert!(offences(every_fault_has_its_row, &[(TABLE, &good), SOURCE]).is_empty());
        for missing in ["it/a.rs: helps", "it/b.rs: it_holds", "t/a.rs: it_holds"] {
            let bad = table(|_| format!("`{missing}`"));
            let found = offences(every_fault_has_its_row, &[(TABLE, &bad), SOURCE]);
            assert_eq!(found.len(), FAULTS, "{missing}");
        }
    }

    #[test]
    fn a_missing_a_doubled_and_an_unknown_number_are_caught() {
        let good = table(|_| "x".to_owned());
        for (from, to) in [("| 7 |", "| 8 |"), ("| 100 |", "| 101 |")] {
            let found = offences(every_fault_has_its_row, &[(TABLE, &good.replace(from, to))]);
            assert_eq!(found.len(), 2, "{found:?}");
        }
        assert_eq!(offences(every_fault_has_its_row, &[]).len(), 1);
    }
}
