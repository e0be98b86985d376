//! Finds the tests that say which rows they prove.

use std::collections::BTreeSet;
use std::fmt;

use crate::repository::Repository;
use crate::source::Source;

/// The line above a test, up to its ids.
const MARK: &str = "/// Proves:";

/// One test and the rows it claims.
#[derive(Debug, PartialEq)]
pub(super) struct Proof {
    pub(super) path: String,
    pub(super) test: String,
    pub(super) rows: Vec<String>,
}

impl fmt::Display for Proof {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path, self.test)
    }
}

/// Every claim in the tree, and the claims that belong to no test.
pub(super) fn find(repository: &Repository) -> (Vec<Proof>, Vec<String>) {
    let (mut proofs, mut problems) = (Vec::new(), Vec::new());
    for (path, source) in repository.sources() {
        // Only comments count: this program's own tests quote claims in literals.
        let lines: Vec<(&str, &str)> = source.comments.lines().zip(source.code.lines()).collect();
        for (at, (comment, _)) in lines.iter().enumerate() {
            let Some(claim) = comment.trim().strip_prefix(MARK) else { continue };
            let rows: Vec<String> = claim
                .split(',')
                .map(|id| id.trim().to_owned())
                .filter(|id| !id.is_empty())
                .collect();
            match test_below(&lines[at + 1..]).filter(|_| !rows.is_empty()) {
                Some(test) => proofs.push(Proof { path: path.to_owned(), test, rows }),
                None => problems
                    .push(format!("{path}:{}: a claim without ids or without a test", at + 1)),
            }
        }
    }
    (proofs, problems)
}

/// The names of all tests in a file.
pub(crate) fn tests(source: &Source) -> BTreeSet<String> {
    let lines: Vec<(&str, &str)> = source.comments.lines().zip(source.code.lines()).collect();
    let attributes = (0..lines.len()).filter(|at| lines[*at].1.trim_start().starts_with("#["));
    attributes.filter_map(|at| test_below(&lines[at..])).collect()
}

/// The name of the test that follows, with nothing but comments and attributes in between.
fn test_below(lines: &[(&str, &str)]) -> Option<String> {
    let mut is_test = false;
    for (comment, code) in lines {
        let code = code.trim();
        if let Some(attribute) = code.strip_prefix("#[") {
            let name = attribute.split(['(', ']']).next().unwrap_or_default();
            is_test |= name == "test" || name.ends_with("::test");
        } else if let Some((_, rest)) = code.split_once("fn ") {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            return is_test.then(|| name.trim().to_owned());
        } else if comment.trim().is_empty() {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> (Vec<Proof>, Vec<String>) {
        let mut repository = Repository::default();
        repository.insert("a.rs", text);
        find(&repository)
    }

    #[test]
    fn claims_are_read_above_any_kind_of_test() {
        let text = "/// Proves: N1, FR2.3\n#[test]\nfn plain() {}\n/// Proves: N2\n/// More words.\n#[tokio::test(flavor = \"multi_thread\")]\n#[cfg(unix)]\nasync fn waiting() {}\n";
        let (proofs, problems) = scan(text);
        assert!(problems.is_empty());
        assert_eq!(proofs[0].rows, ["N1", "FR2.3"]);
        assert_eq!((proofs[0].test.as_str(), proofs[1].test.as_str()), ("plain", "waiting"));
    }

    #[test]
    fn a_claim_above_no_test_is_a_problem() {
        for text in [
            "/// Proves: N1\nfn no_test() {}\n",
            "/// Proves: N1\n\n#[test]\nfn too_far() {}\n",
            "/// Proves:\n#[test]\nfn nothing() {}\n",
            "/// Proves: N1\n",
        ] {
            let (proofs, problems) = scan(text);
            assert_eq!((proofs.len(), problems.len()), (0, 1), "{text}");
        }
    }
}
