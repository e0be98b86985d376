//! `rows`: every requirement with the test or command that proves it, or with whom it is owed.

mod proofs;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::Repository;
use crate::{Chore, say};
use proofs::Proof;
pub(crate) use proofs::tests as tests_of;
use table::Row;

/// Issues that are done: each of their rows needs a test or a command.
const FINISHED: &[&str] = &["SPINE", "PROMISES", "TOOLCALL", "PROVIDERS"];

/// Rows one test may claim: more is no proof of any of them.
const PER_TEST: usize = 3;

/// Prints the rows and checks them.
///
/// # Errors
///
/// A row of a finished issue without proof, or a test that claims rows wrongly.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    let owed_too = match arguments {
        [] => false,
        ["--owed"] => true,
        [other, ..] => return Err(format!("`rows` takes no `{other}`")),
    };
    let repository = Repository::read()?;
    let rows = table::parse(repository.text(table::FILE).unwrap_or_default())?;
    let (found, mut problems) = proofs::find(&repository);
    problems.extend(check(&rows, &found, FINISHED));
    for line in report(&rows, &found, owed_too) {
        say::line(line);
    }
    for problem in &problems {
        say::problem(problem);
    }
    match problems.len() {
        0 => Ok(()),
        count => Err(format!("{count} problems with the rows")),
    }
}

/// What is wrong with the claims, and which rows are due without one.
fn check(rows: &[Row], proofs: &[Proof], finished: &[&str]) -> Vec<String> {
    let known: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let mut problems = Vec::new();
    for proof in proofs {
        if proof.rows.len() > PER_TEST {
            let count = proof.rows.len();
            problems.push(format!("{proof} claims {count} rows, {PER_TEST} are the limit"));
        }
        let strangers = proof.rows.iter().filter(|row| !known.contains(row.as_str()));
        problems.extend(strangers.map(|row| format!("{proof} claims `{row}`, which is no row")));
    }
    let proven: BTreeSet<&str> =
        proofs.iter().flat_map(|proof| &proof.rows).map(String::as_str).collect();
    for row in rows.iter().filter(|row| finished.contains(&row.owner.as_str())) {
        if row.command.is_none() && !proven.contains(row.id.as_str()) {
            problems.push(format!("{} ({}) is due since {}", row.id, row.title, row.owner));
        }
    }
    problems
}

/// One line a row: its tests or command, else the issue it is owed to.
fn report(rows: &[Row], proofs: &[Proof], owed_too: bool) -> Vec<String> {
    let mut by_row: BTreeMap<&str, Vec<&Proof>> = BTreeMap::new();
    for proof in proofs {
        for row in &proof.rows {
            by_row.entry(row).or_default().push(proof);
        }
    }
    let mut lines = Vec::new();
    let mut owed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut proven = 0;
    for row in rows {
        let tests = by_row.get(row.id.as_str()).map_or(&[][..], Vec::as_slice);
        let mut ways: Vec<String> = tests.iter().map(|proof| format!("    {proof}")).collect();
        ways.extend(row.command.as_ref().map(|command| format!("    `{command}`")));
        if ways.is_empty() {
            *owed.entry(&row.owner).or_default() += 1;
            if owed_too {
                lines.push(format!("{}  {}\n    owed to {}", row.id, row.title, row.owner));
            }
            continue;
        }
        proven += 1;
        lines.push(format!("{}  {}\n{}", row.id, row.title, ways.join("\n")));
    }
    lines.push(format!("\n{proven} of {} rows have a test or a command", rows.len()));
    lines.extend(owed.iter().map(|(owner, count)| match *owner {
        table::NOT_PLANNED => format!("{count} rows are beyond the plan"),
        _ => format!("{count} rows are owed to {owner}"),
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        table::parse("id\tkind\towner\ttitle\tcommand\nN1\tc\tSPINE\tOne\nN2\tc\tSPINE\tTwo\tcargo x\nN3\tc\tGHOST\tThree\n")
            .unwrap()
    }

    fn proof(rows: &[&str]) -> Proof {
        let rows = rows.iter().map(|row| (*row).to_owned()).collect();
        Proof { path: "a.rs".to_owned(), test: "it_holds".to_owned(), rows }
    }

    #[test]
    fn a_finished_issue_needs_a_proof_for_each_of_its_rows() {
        assert_eq!(check(&rows(), &[], &[]), Vec::<String>::new());
        assert_eq!(check(&rows(), &[], &["SPINE"]), ["N1 (One) is due since SPINE"]);
        assert_eq!(check(&rows(), &[proof(&["N1"])], &["SPINE"]), Vec::<String>::new());
    }

    #[test]
    fn a_test_claims_three_known_rows_at_most() {
        assert_eq!(check(&rows(), &[proof(&["N1", "N2", "N3", "N1"])], &[]).len(), 1);
        assert_eq!(check(&rows(), &[proof(&["N4"])], &[]).len(), 1);
    }

    #[test]
    fn the_report_names_tests_commands_and_whom_a_row_is_owed_to() {
        let text = report(&rows(), &[proof(&["N1"])], true).join("\n");
        assert!(text.contains("N1  One\n    a.rs: it_holds"), "{text}");
        assert!(text.contains("N2  Two\n    `cargo x`"), "{text}");
        assert!(text.contains("N3  Three\n    owed to GHOST"), "{text}");
        assert!(text.contains("1 rows are owed to GHOST"), "{text}");
    }
}
