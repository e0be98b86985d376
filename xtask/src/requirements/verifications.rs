//! Finds the tests that claim requirements.

use std::collections::BTreeSet;
use std::fmt;

use crate::repository::Repository;
use crate::source::SourceFile;

/// The start of a claim in the comment above a test, before its ids.
const CLAIM_PREFIX: &str = "/// Proves:";

/// A test with the requirements that it claims.
#[derive(Debug, PartialEq)]
pub(super) struct Verification {
    pub(super) path: String,
    pub(super) test_name: String,
    pub(super) requirement_ids: Vec<String>,
}

impl fmt::Display for Verification {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path, self.test_name)
    }
}

/// Returns all claims in the repository, and the claims without a test.
pub(super) fn find_verifications(repository: &Repository) -> (Vec<Verification>, Vec<String>) {
    let (mut proofs, mut problems) = (Vec::new(), Vec::new());
    for (path, source) in repository.sources() {
        // Only comments count: the tests of this program quote claims in literals.
        let lines: Vec<(&str, &str)> = source.comments.lines().zip(source.code.lines()).collect();
        for (at, (comment, _)) in lines.iter().enumerate() {
            let Some(claim) = comment.trim().strip_prefix(CLAIM_PREFIX) else { continue };
            let requirement_ids: Vec<String> = claim
                .split(',')
                .map(|id| id.trim().to_owned())
                .filter(|id| !id.is_empty())
                .collect();
            match next_test_name(&lines[at + 1..]).filter(|_| !requirement_ids.is_empty()) {
                Some(test_name)
                    if is_never_run(&lines[at + 1..], repository.text(path), at + 1) =>
                {
                    let problem = "claim of a test that CI does not run";
                    problems.push(format!("{path}:{}: {problem}: `{test_name}`", at + 1));
                }
                Some(test_name) => {
                    proofs.push(Verification { path: path.to_owned(), test_name, requirement_ids });
                }
                None => {
                    problems
                        .push(format!("{path}:{}: claim without ids or without a test", at + 1));
                }
            }
        }
    }
    for (path, text) in repository.texts().filter(|(path, _)| is_python_test(path)) {
        find_python_verifications(path, text, &mut proofs, &mut problems);
    }
    (proofs, problems)
}

/// Whether the file has tests of the Python package that CI runs.
fn is_python_test(path: &str) -> bool {
    path.strip_prefix("python/tests/test_").is_some_and(|name| name.ends_with(".py"))
}

/// Finds the claims in the documentation of Python tests.
fn find_python_verifications(
    path: &str,
    text: &str,
    proofs: &mut Vec<Verification>,
    problems: &mut Vec<String>,
) {
    let mut test_name = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let definition = line.strip_prefix("async ").unwrap_or(line).strip_prefix("def ");
        if let Some(name) = definition.and_then(|rest| rest.split('(').next()) {
            test_name = Some(name).filter(|name| name.starts_with("test_"));
        }
        let Some(claim) = line.trim_start_matches('"').strip_prefix("Proves:") else { continue };
        let ids = claim.trim_end_matches('"').split(',').map(|id| id.trim().trim_end_matches('.'));
        let requirement_ids: Vec<String> =
            ids.filter(|id| !id.is_empty()).map(str::to_owned).collect();
        match test_name.filter(|_| !requirement_ids.is_empty()) {
            Some(name) => proofs.push(Verification {
                path: path.to_owned(),
                test_name: name.to_owned(),
                requirement_ids,
            }),
            None => {
                problems.push(format!("{path}:{}: claim without ids or without a test", at + 1));
            }
        }
    }
}

/// The start of the reason of an ignored test that has a step of its own in CI.
const RUN_BY_CI: &str = "`cargo xtask test` runs it";

/// Whether the next test is ignored and CI does not run it either. `lines` start at the line
/// `first_line` of the file, whose reasons are literals, so they stand only in its `text`.
fn is_never_run(lines: &[(&str, &str)], text: Option<&str>, first_line: usize) -> bool {
    let attributes = lines.iter().take_while(|(_, code)| !code.contains("fn "));
    let ignored = attributes.clone().position(|(_, code)| code.trim().starts_with("#[ignore"));
    ignored.is_some_and(|at| {
        let line = text.and_then(|text| text.lines().nth(first_line + at));
        !line.is_some_and(|line| line.contains(RUN_BY_CI))
    })
}

/// The names of all tests in a file.
pub(crate) fn test_names(source: &SourceFile) -> BTreeSet<String> {
    let lines: Vec<(&str, &str)> = source.comments.lines().zip(source.code.lines()).collect();
    let attributes = (0..lines.len()).filter(|at| lines[*at].1.trim_start().starts_with("#["));
    attributes.filter_map(|at| next_test_name(&lines[at..])).collect()
}

/// The name of the next test, after comments and attributes only.
pub(crate) fn next_test_name(lines: &[(&str, &str)]) -> Option<String> {
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

    fn scan(text: &str) -> (Vec<Verification>, Vec<String>) {
        let mut repository = Repository::default();
        repository.insert("a.rs", text);
        find_verifications(&repository)
    }

    #[test]
    fn claims_of_python_tests_are_read_in_their_documentation() {
        let text = "def test_a(x):\n    \"\"\"Proves: FR1.4, N5.\"\"\"\n\nasync def test_b():\n    \"\"\"Words.\n\n    Proves: N1\n    \"\"\"\ndef helper():\n    \"\"\"Proves: N2\"\"\"\n";
        let mut repository = Repository::default();
        repository.insert("python/tests/test_a.py", text);
        repository.insert("python/tests/frameworks/test_b.py", text);
        let (proofs, problems) = find_verifications(&repository);
        let names: Vec<_> = proofs.iter().map(|proof| proof.test_name.as_str()).collect();
        assert_eq!(names, ["test_a", "test_b"]);
        assert_eq!(proofs[0].requirement_ids, ["FR1.4", "N5"]);
        assert_eq!(problems, ["python/tests/test_a.py:10: claim without ids or without a test"]);
    }

    #[test]
    fn claims_are_read_above_any_kind_of_test() {
        let text = "/// Proves: N1, FR2.3\n#[test]\nfn plain() {}\n/// Proves: N2\n/// More words.\n#[tokio::test(flavor = \"multi_thread\")]\n#[cfg(unix)]\nasync fn waiting() {}\n";
        let (proofs, problems) = scan(text);
        assert!(problems.is_empty());
        assert_eq!(proofs[0].requirement_ids, ["N1", "FR2.3"]);
        assert_eq!(
            (proofs[0].test_name.as_str(), proofs[1].test_name.as_str()),
            ("plain", "waiting")
        );
    }

    #[test]
    fn a_claim_of_a_test_that_never_runs_is_a_problem() {
        let ignored = |reason: &str| {
            let text = format!("/// Proves: N1\n#[test]\n#[ignore = \"{reason}\"]\nfn a() {{}}\n");
            scan(&text)
        };
        assert_eq!(ignored("takes a minute").1.len(), 1);
        let (proofs, problems) = ignored("needs a browser: `cargo xtask test` runs it");
        assert_eq!((proofs.len(), problems.len()), (1, 0));
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
