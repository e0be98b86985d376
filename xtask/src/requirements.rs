//! `requirements`: lists each requirement with its tests, and checks the list.

mod table;
mod verifications;

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::Repository;
use crate::{TaskResult, output};
use table::{OPEN, Requirement};
use verifications::Verification;
pub(crate) use verifications::{next_test_name, test_names as tests_of};

/// Maximum number of requirements that one test may claim; a test with more verifies none of them.
const MAX_REQUIREMENTS_PER_TEST: usize = 3;

/// Prints the requirements and checks them.
///
/// # Errors
///
/// A requirement that isn't marked as open has no verification, an open one has one, or a claim is
/// invalid.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let owed_too = match arguments {
        [] => false,
        ["--owed"] => true,
        [other, ..] => return Err(format!("`requirements` takes no `{other}`")),
    };
    let repository = Repository::load()?;
    let rows = table::parse(repository.text(table::TABLE_PATH).unwrap_or_default())?;
    let (found, mut problems) = verifications::find_verifications(&repository);
    problems.extend(check(&rows, &found));
    for line in report(&rows, &found, owed_too) {
        output::print_line(line);
    }
    for problem in &problems {
        output::print_error(problem);
    }
    match problems.len() {
        0 => Ok(()),
        count => Err(format!("{count} problems with the requirements")),
    }
}

/// Returns the problems of the claims. A requirement that is verified once stays verified: only the
/// word `open` in the table excuses it, and goes with the first test.
fn check(rows: &[Requirement], proofs: &[Verification]) -> Vec<String> {
    let ids: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let mut problems = Vec::new();
    for proof in proofs {
        if proof.requirement_ids.len() > MAX_REQUIREMENTS_PER_TEST {
            let count = proof.requirement_ids.len();
            problems.push(format!(
                "{proof} claims {count} requirements, the limit is {MAX_REQUIREMENTS_PER_TEST}"
            ));
        }
        let strangers = proof.requirement_ids.iter().filter(|row| !ids.contains(row.as_str()));
        problems
            .extend(strangers.map(|row| format!("{proof} claims the unknown requirement `{row}`")));
    }
    let proven: BTreeSet<&str> =
        proofs.iter().flat_map(|proof| &proof.requirement_ids).map(String::as_str).collect();
    for row in rows {
        let Requirement { id, title, .. } = row;
        let is_verified = row.command.is_some() || proven.contains(id.as_str());
        match (row.is_open, is_verified) {
            (false, false) => {
                problems.push(format!("{id} ({title}) has no test and no command"));
            }
            (true, true) => {
                problems.push(format!("{id} ({title}) has a test: remove `{OPEN}` from its row"));
            }
            (true, false) | (false, true) => {}
        }
    }
    problems
}

/// One entry per requirement: its tests or command, or the issue that will verify it.
fn report(rows: &[Requirement], proofs: &[Verification], owed_too: bool) -> Vec<String> {
    let mut by_row: BTreeMap<&str, Vec<&Verification>> = BTreeMap::new();
    for proof in proofs {
        for row in &proof.requirement_ids {
            by_row.entry(row).or_default().push(proof);
        }
    }
    let mut lines = Vec::new();
    let mut owed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut proven = 0;
    for row in rows {
        let tests = by_row.get(row.id.as_str()).map_or(&[][..], Vec::as_slice);
        let mut verified_by: Vec<String> =
            tests.iter().map(|proof| format!("    {proof}")).collect();
        verified_by.extend(row.command.as_ref().map(|command| format!("    `{command}`")));
        if verified_by.is_empty() {
            *owed.entry(&row.owner).or_default() += 1;
            if owed_too {
                lines.push(format!("{}  {}\n    open: issue {}", row.id, row.title, row.owner));
            }
            continue;
        }
        proven += 1;
        lines.push(format!("{}  {}\n{}", row.id, row.title, verified_by.join("\n")));
    }
    lines.push(format!("\n{proven} of {} requirements have a test or a command", rows.len()));
    lines.extend(owed.iter().map(|(owner, count)| match *owner {
        table::NOT_PLANNED => format!("{count} requirements are not planned"),
        _ => format!("{count} requirements are open in issue {owner}"),
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirements() -> Vec<Requirement> {
        table::parse("id\tkind\towner\ttitle\tcommand\nN1\tc\tSPINE\tOne\nN2\tc\tSPINE\tTwo\tcargo x\nN3\tc\tGHOST\tThree\topen\n")
            .unwrap()
    }

    fn verification(rows: &[&str]) -> Verification {
        let requirement_ids = rows.iter().map(|row| (*row).to_owned()).collect();
        Verification { path: "a.rs".to_owned(), test_name: "it_holds".to_owned(), requirement_ids }
    }

    #[test]
    fn each_requirement_that_is_not_open_needs_a_verification() {
        assert_eq!(check(&requirements(), &[]), ["N1 (One) has no test and no command"]);
        assert_eq!(check(&requirements(), &[verification(&["N1"])]), Vec::<String>::new());
    }

    #[test]
    fn an_open_requirement_with_a_test_is_a_problem() {
        assert_eq!(
            check(&requirements(), &[verification(&["N1", "N3"])]),
            ["N3 (Three) has a test: remove `open` from its row"]
        );
    }

    #[test]
    fn a_test_claims_at_most_three_known_requirements() {
        let many = check(&requirements(), &[verification(&["N1", "N2", "N2", "N1"])]);
        assert_eq!(many, ["a.rs: it_holds claims 4 requirements, the limit is 3"]);
        let unknown = check(&requirements(), &[verification(&["N1", "N4"])]);
        assert_eq!(unknown, ["a.rs: it_holds claims the unknown requirement `N4`"]);
    }

    #[test]
    fn the_report_names_tests_commands_and_the_owner_of_open_requirements() {
        let text = report(&requirements(), &[verification(&["N1"])], true).join("\n");
        assert!(text.contains("N1  One\n    a.rs: it_holds"), "{text}");
        assert!(text.contains("N2  Two\n    `cargo x`"), "{text}");
        assert!(text.contains("N3  Three\n    open: issue GHOST"), "{text}");
        assert!(text.contains("1 requirements are open in issue GHOST"), "{text}");
    }
}
