//! Packages of which the product contains several versions.

use std::collections::BTreeMap;

use super::policy::{POLICY_FILE, Policy};
use super::resolved::{Package, PackageGraph};

/// Returns a line for each version that the policy does not accept, and for each entry of the policy
/// that is out of date.
pub(super) fn check(graph: &PackageGraph, policy: &Policy) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<&Package>> = BTreeMap::new();
    for package in &graph.packages {
        by_name.entry(&package.name).or_default().push(package);
    }
    by_name.retain(|_, versions| versions.len() > 1);
    let mut problems = Vec::new();
    for (name, versions) in &by_name {
        let accepted = policy.duplicates.get(*name).map_or(&[][..], Vec::as_slice);
        if versions.iter().any(|package| !accepted.iter().any(|line| is_of_line(package, line))) {
            problems.push(new_duplicate(name, versions));
        }
    }
    for (name, lines) in &policy.duplicates {
        let versions = by_name.get(name.as_str()).map_or(&[][..], Vec::as_slice);
        for line in lines {
            if !versions.iter().any(|package| is_of_line(package, line)) {
                problems.push(format!(
                    "`{POLICY_FILE}`: the product has no second version of `{name}`, or none of \
                     `{line}`; remove the entry"
                ));
            }
        }
    }
    problems
}

/// Whether a package has the version or a compatible later version: `0.8` includes `0.8.8`.
fn is_of_line(package: &Package, line: &str) -> bool {
    let rest = package.version.strip_prefix(line);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn new_duplicate(name: &str, versions: &[&Package]) -> String {
    let versions: Vec<String> = versions
        .iter()
        .map(|package| {
            let dependents: Vec<_> =
                package.dependents.iter().map(|name| format!("`{name}`")).collect();
            format!("{} by {}", package.version, dependents.join(", "))
        })
        .collect();
    format!(
        "package `{name}` has several versions: {}; use one version, or add the versions with a \
         reason to `{POLICY_FILE}`",
        versions.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(versions: &[(&str, &str)], accepted: &[&str]) -> Vec<String> {
        let packages = versions.iter().map(|(version, dependent)| Package {
            name: "rand".to_owned(),
            version: (*version).to_owned(),
            licence: None,
            dependents: [(*dependent).to_owned()].into(),
        });
        let graph = PackageGraph { packages: packages.collect() };
        let accepted: Vec<String> = accepted.iter().map(|line| (*line).to_owned()).collect();
        let duplicates = if accepted.is_empty() {
            BTreeMap::new()
        } else {
            [("rand".to_owned(), accepted)].into()
        };
        check(&graph, &Policy { licences: Vec::new(), duplicates })
    }

    const TWO: [(&str, &str); 2] = [("0.8.8", "oauth 1.0.0"), ("0.9.5", "socket 2.0.0")];

    #[test]
    fn a_new_duplicate_is_reported_with_the_packages_that_depend_on_it() {
        let found = problems(&TWO, &[]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with(
                "package `rand` has several versions: 0.8.8 by `oauth 1.0.0`; 0.9.5 by `socket 2.0.0`;"
            ),
            "{found:?}"
        );
        assert!(problems(&TWO[..1], &[]).is_empty(), "one version is no duplicate");
    }

    #[test]
    fn an_accepted_duplicate_is_accepted_with_compatible_versions_and_no_other() {
        assert!(problems(&TWO, &["0.8", "0.9"]).is_empty());
        let third = [TWO[0], TWO[1], ("0.10.0", "new 1.0.0")];
        assert_eq!(problems(&third, &["0.8", "0.9"]).len(), 1);
        let longer = [("0.80.1", "a 1.0.0"), TWO[1]];
        assert_eq!(problems(&longer, &["0.8", "0.9"]).len(), 2, "`0.8` is not `0.80`");
    }

    #[test]
    fn an_accepted_duplicate_that_no_longer_exists_is_reported() {
        let found = problems(&TWO[..1], &["0.8", "0.9"]);
        assert_eq!(found.len(), 2);
        assert!(found[0].contains("remove the entry"), "{found:?}");
    }
}
