//! Checks the dependencies between the crates against ARCHITECTURE.md.

use std::collections::BTreeSet;

use toml::Table;

use super::Violation;
use crate::repository::Repository;

/// Every crate with its dependencies in the workspace.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    (
        "innkeeper",
        &["innkeeper-agent", "innkeeper-host", "innkeeper-protocol", "innkeeper-toolcall"],
    ),
    (
        "innkeeper-agent",
        &["innkeeper-golden", "innkeeper-host", "innkeeper-protocol", "innkeeper-toolcall"],
    ),
    (
        "innkeeper-gateway",
        &["innkeeper-host", "innkeeper-protocol", "innkeeper-schema", "innkeeper-toolcall"],
    ),
    ("innkeeper-application", &["innkeeper", "innkeeper-mcp-client"]),
    (
        "innkeeper-cli",
        &[
            "innkeeper-agent",
            "innkeeper-gateway",
            "innkeeper-host",
            "innkeeper-protocol",
            "innkeeper-toolcall",
        ],
    ),
    ("innkeeper-config", &[]),
    ("innkeeper-conformance", &["innkeeper-host", "innkeeper-protocol"]),
    (
        "innkeeper-fuzz",
        &["innkeeper-golden", "innkeeper-host", "innkeeper-protocol", "innkeeper-toolcall"],
    ),
    ("innkeeper-golden", &[]),
    (
        "innkeeper-host",
        &["innkeeper-config", "innkeeper-process", "innkeeper-protocol", "innkeeper-schema"],
    ),
    ("innkeeper-mcp-client", &["innkeeper"]),
    ("innkeeper-process", &["innkeeper-config", "innkeeper-supervisor"]),
    ("innkeeper-protocol", &[]),
    (
        "innkeeper-python",
        &[
            "innkeeper",
            "innkeeper-gateway",
            "innkeeper-host",
            "innkeeper-protocol",
            "innkeeper-toolcall",
        ],
    ),
    ("innkeeper-schema", &[]),
    ("innkeeper-supervisor", &[]),
    ("innkeeper-testkit", &[]),
    ("innkeeper-toolcall", &["innkeeper-schema"]),
    // Behind a feature, for `soak` only.
    ("xtask", &["innkeeper-host", "innkeeper-testkit"]),
];

/// The additional dependency of tests: the testkit, which shares no code with the product.
const TEST_DEPENDENCY: &str = "innkeeper-testkit";

/// Checks that the crate dependencies are exactly the allowed ones.
pub(super) fn check_crate_dependencies(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut crates = BTreeSet::new();
    for (path, text) in repository.texts().filter(|(path, _)| is_workspace_manifest(path)) {
        let Ok(manifest) = text.parse::<Table>() else {
            violations.push(Violation::new(path, 0, "is not valid TOML"));
            continue;
        };
        let name = manifest.get("package").and_then(|package| package.get("name")?.as_str());
        let dir = path.split('/').rev().nth(1);
        let Some((name, drawn)) =
            ALLOWED_DEPENDENCIES.iter().find(|(crate_name, _)| Some(*crate_name) == name)
        else {
            violations.push(Violation::new(
                path,
                0,
                "is a crate that the dependency list does not contain",
            ));
            continue;
        };
        crates.insert(*name);
        if dir != Some(name) {
            violations.push(Violation::new(
                path,
                0,
                format!("directory and crate `{name}` have different names"),
            ));
        }
        violations.extend(compare_dependencies(path, &manifest, drawn));
    }
    let missing = ALLOWED_DEPENDENCIES
        .iter()
        .filter(|(name, _)| !crates.is_empty() && !crates.contains(name));
    violations.extend(missing.map(|(name, _)| {
        Violation::new(
            "Cargo.toml",
            0,
            format!("crate `{name}` of the dependency list does not exist"),
        )
    }));
    violations
}

fn is_workspace_manifest(path: &str) -> bool {
    path == "xtask/Cargo.toml" || path.starts_with("crates/") && path.ends_with("/Cargo.toml")
}

fn compare_dependencies(path: &str, manifest: &Table, drawn: &[&str]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let product = workspace_dependencies(manifest, &["dependencies", "build-dependencies"]);
    let drawn: BTreeSet<String> = drawn.iter().map(|name| (*name).to_owned()).collect();
    for name in product.difference(&drawn) {
        violations.push(Violation::new(
            path,
            0,
            format!("depends on `{name}`, which is not allowed"),
        ));
    }
    for name in drawn.difference(&product) {
        violations.push(Violation::new(
            path,
            0,
            format!("does not depend on `{name}`, which is in the dependency list"),
        ));
    }
    for name in workspace_dependencies(manifest, &["dev-dependencies"]) {
        if name != TEST_DEPENDENCY && !drawn.contains(&name) {
            violations.push(Violation::new(
                path,
                0,
                format!("its tests depend on `{name}`, which is not allowed"),
            ));
        }
    }
    violations
}

/// The workspace crates in these sections, for all platforms.
fn workspace_dependencies(manifest: &Table, sections: &[&str]) -> BTreeSet<String> {
    let mut tables: Vec<&Table> = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(|target| target.as_table()) {
        tables.extend(targets.values().filter_map(|target| target.as_table()));
    }
    let mut names = BTreeSet::new();
    for table in tables {
        for section in sections {
            let Some(section) = table.get(*section).and_then(|section| section.as_table()) else {
                continue;
            };
            let real = section.iter().map(|(key, value)| {
                value.get("package").and_then(|package| package.as_str()).unwrap_or(key)
            });
            names.extend(real.filter(|name| name.starts_with("innkeeper")).map(str::to_owned));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    fn manifest_text(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{rest}")
    }

    fn violations_in(path: &str, text: &str) -> Vec<String> {
        let all = violations(check_crate_dependencies, &[(path, text)]);
        all.into_iter().filter(|line| line.starts_with(path)).collect()
    }

    #[test]
    fn an_undeclared_dependency_is_caught_under_any_name_and_target() {
        let path = "crates/innkeeper-protocol/Cargo.toml";
        let plain = manifest_text(
            "innkeeper-protocol",
            "[dependencies]\ninnkeeper-host.workspace = true\n",
        );
        let renamed = manifest_text(
            "innkeeper-protocol",
            "[target.'cfg(unix)'.dependencies]\nx = { package = \"innkeeper-host\", path = \"..\" }\n",
        );
        for text in [plain, renamed] {
            assert_eq!(violations_in(path, &text).len(), 1, "{text}");
        }
        assert!(violations_in(path, &manifest_text("innkeeper-protocol", "")).is_empty());
    }

    #[test]
    fn a_missing_dependency_and_an_unknown_crate_are_caught() {
        assert_eq!(
            violations_in("crates/innkeeper-host/Cargo.toml", &manifest_text("innkeeper-host", ""))
                .len(),
            4,
            "config, process, protocol and schema"
        );
        assert_eq!(violations_in("crates/new/Cargo.toml", &manifest_text("new", "")).len(), 1);
    }

    #[test]
    fn tests_may_use_the_kit_and_nothing_above() {
        let path = "crates/innkeeper-testkit/Cargo.toml";
        let text = manifest_text(
            "innkeeper-testkit",
            "[dev-dependencies]\ninnkeeper-host.workspace = true\n",
        );
        assert_eq!(violations_in(path, &text).len(), 1);
        let text = manifest_text(
            "innkeeper-protocol",
            "[dev-dependencies]\ninnkeeper-testkit.workspace = true\n",
        );
        assert!(violations_in("crates/innkeeper-protocol/Cargo.toml", &text).is_empty());
    }
}
