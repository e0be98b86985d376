//! Checks the annotations of attacks, and that `docs/attacks.md` shows them.

use super::Violation;
use crate::attacks;
use crate::repository::Repository;

/// Checks that each annotation is valid, and that the page is what the tests say.
pub(super) fn check_attacks(repository: &Repository) -> Vec<Violation> {
    let problems = attacks::find_problems(repository);
    problems.iter().map(|(path, line, text)| Violation::new(path, *line, text.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    #[test]
    fn a_page_that_differs_and_a_malformed_annotation_are_caught() {
        let differs =
            "docs/attacks.md:1: differs from the tests; run `cargo xtask attacks --write`";
        assert_eq!(violations(check_attacks, &[(attacks::PAGE_PATH, "")]), [differs]);
        let test = "/// Attack: framing | a line\n#[test]\nfn ends() {}\n";
        let expected =
            "a.rs:1: an attack has 4 cells (surface | attempt | outcome | invariant), not 2";
        assert_eq!(violations(check_attacks, &[("a.rs", test)]), [expected]);
    }
}
