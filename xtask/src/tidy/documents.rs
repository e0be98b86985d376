//! Checks the module map and the numbers of the decisions.

use std::collections::BTreeSet;

use super::Violation;
use crate::repository::Repository;

const MAP_PATH: &str = "ARCHITECTURE.md";
const HOST_LIB_PATH: &str = "crates/innkeeper-host/src/lib.rs";

/// Checks that ARCHITECTURE.md names every crate and every module of the host.
pub(super) fn check_module_map(repository: &Repository) -> Vec<Violation> {
    let map = repository.text(MAP_PATH).unwrap_or_default();
    let is_mapped = |name: &str| map.contains(&format!("`{name}`"));
    let mut violations = Vec::new();
    for (path, _) in repository.texts() {
        let member = path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/Cargo.toml"));
        if let Some(member) = member.filter(|member| !is_mapped(member)) {
            violations.push(Violation::new(
                MAP_PATH,
                0,
                format!("does not name the crate `{member}`"),
            ));
        }
    }
    let modules = repository.source(HOST_LIB_PATH).into_iter().flat_map(|source| source.modules());
    for module in modules.filter(|module| !is_mapped(&format!("{module}.rs"))) {
        violations.push(Violation::new(
            MAP_PATH,
            0,
            format!("does not name the module `{module}.rs` of the host"),
        ));
    }
    violations
}

/// Checks that the decision pages are numbered from one without gaps or duplicates.
pub(super) fn check_decision_numbers(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut numbers = BTreeSet::new();
    for (path, _) in repository.texts().filter(|(path, _)| path.starts_with("docs/decisions/")) {
        let file = path.rsplit('/').next().unwrap_or(path);
        let number = file.split_once('-').and_then(|(digits, _)| digits.parse::<usize>().ok());
        match number {
            Some(number) if numbers.insert(number) => {}
            Some(number) => {
                violations.push(Violation::new(path, 0, format!("duplicate decision {number}")));
            }
            None => violations.push(Violation::new(path, 0, "has no leading number")),
        }
    }
    let gaps =
        (1..=numbers.last().copied().unwrap_or(0)).filter(|number| !numbers.contains(number));
    violations.extend(
        gaps.map(|gap| Violation::new("docs/decisions", 0, format!("decision {gap} is missing"))),
    );
    violations
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    #[test]
    fn a_module_missing_from_the_map_is_caught() {
        let files = [
            (MAP_PATH, "`innkeeper-host` has `call.rs`."),
            ("crates/innkeeper-host/Cargo.toml", ""),
            ("crates/innkeeper-new/Cargo.toml", ""),
            (HOST_LIB_PATH, "mod call;\npub mod secret;\n"),
        ];
        let found = violations(check_module_map, &files);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`innkeeper-new`") && found[1].contains("`secret.rs`"));
    }

    #[test]
    fn a_gap_a_double_and_a_page_without_number_are_caught() {
        let page = |name: &'static str| (name, "text");
        let good = [page("docs/decisions/0001-a.md"), page("docs/decisions/0002-b.md")];
        assert!(violations(check_decision_numbers, &good).is_empty());
        let bad = [
            page("docs/decisions/0001-a.md"),
            page("docs/decisions/0001-b.md"),
            page("docs/decisions/0003-c.md"),
            page("docs/decisions/idea.md"),
        ];
        assert_eq!(violations(check_decision_numbers, &bad).len(), 3);
    }
}
