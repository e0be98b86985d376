//! The rule about which crate may know which: the drawing in ARCHITECTURE.md, edge for edge.

use std::collections::BTreeSet;

use toml::Table;

use super::Offence;
use crate::repository::Repository;

/// Every crate with the crates of ours it depends on.
const EDGES: &[(&str, &[&str])] = &[
    (
        "innkeeper",
        &["innkeeper-agent", "innkeeper-host", "innkeeper-protocol", "innkeeper-toolcall"],
    ),
    ("innkeeper-agent", &["innkeeper-host", "innkeeper-protocol", "innkeeper-toolcall"]),
    (
        "innkeeper-cli",
        &["innkeeper-agent", "innkeeper-host", "innkeeper-protocol", "innkeeper-toolcall"],
    ),
    ("innkeeper-conformance", &["innkeeper-host", "innkeeper-protocol"]),
    ("innkeeper-fuzz", &["innkeeper-host", "innkeeper-protocol", "innkeeper-toolcall"]),
    ("innkeeper-host", &["innkeeper-protocol"]),
    ("innkeeper-protocol", &[]),
    ("innkeeper-testkit", &[]),
    ("innkeeper-toolcall", &[]),
    // Behind a feature, for the soak alone.
    ("xtask", &["innkeeper-host", "innkeeper-testkit"]),
];

/// What tests may use beside that: the kit, which shares no code with the product.
const FOR_TESTS: &str = "innkeeper-testkit";

/// Crate edges are exactly the drawn ones.
pub(super) fn crate_edges(repository: &Repository) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut seen = BTreeSet::new();
    for (path, text) in repository.texts().filter(|(path, _)| is_member(path)) {
        let Ok(manifest) = text.parse::<Table>() else {
            offences.push(Offence::new(path, 0, "is not TOML"));
            continue;
        };
        let name = manifest.get("package").and_then(|package| package.get("name")?.as_str());
        let folder = path.split('/').rev().nth(1);
        let Some((name, drawn)) = EDGES.iter().find(|(known, _)| Some(*known) == name) else {
            offences.push(Offence::new(path, 0, "is a crate that is not in the drawing"));
            continue;
        };
        seen.insert(*name);
        if folder != Some(name) {
            offences.push(Offence::new(
                path,
                0,
                format!("folder and crate `{name}` differ in name"),
            ));
        }
        offences.extend(compare(path, &manifest, drawn));
    }
    let missing = EDGES.iter().filter(|(name, _)| !seen.is_empty() && !seen.contains(name));
    offences.extend(missing.map(|(name, _)| {
        Offence::new("Cargo.toml", 0, format!("`{name}` is drawn but not there"))
    }));
    offences
}

fn is_member(path: &str) -> bool {
    path == "xtask/Cargo.toml" || path.starts_with("crates/") && path.ends_with("/Cargo.toml")
}

fn compare(path: &str, manifest: &Table, drawn: &[&str]) -> Vec<Offence> {
    let mut offences = Vec::new();
    let product = ours(manifest, &["dependencies", "build-dependencies"]);
    let drawn: BTreeSet<String> = drawn.iter().map(|name| (*name).to_owned()).collect();
    for name in product.difference(&drawn) {
        offences.push(Offence::new(path, 0, format!("depends on `{name}`, which is not drawn")));
    }
    for name in drawn.difference(&product) {
        offences.push(Offence::new(
            path,
            0,
            format!("does not depend on `{name}`, which is drawn"),
        ));
    }
    for name in ours(manifest, &["dev-dependencies"]) {
        if name != FOR_TESTS && !drawn.contains(&name) {
            offences.push(Offence::new(path, 0, format!("its tests use `{name}`")));
        }
    }
    offences
}

/// The crates of ours in these sections, whatever platform they are for.
fn ours(manifest: &Table, sections: &[&str]) -> BTreeSet<String> {
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
    use super::super::offences;
    use super::*;

    fn manifest(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{rest}")
    }

    fn found(path: &str, text: &str) -> Vec<String> {
        let all = offences(crate_edges, &[(path, text)]);
        all.into_iter().filter(|line| line.starts_with(path)).collect()
    }

    #[test]
    fn an_edge_that_is_not_drawn_is_caught_under_any_name_and_target() {
        let path = "crates/innkeeper-protocol/Cargo.toml";
        let plain =
            manifest("innkeeper-protocol", "[dependencies]\ninnkeeper-host.workspace = true\n");
        let renamed = manifest(
            "innkeeper-protocol",
            "[target.'cfg(unix)'.dependencies]\nx = { package = \"innkeeper-host\", path = \"..\" }\n",
        );
        for text in [plain, renamed] {
            assert_eq!(found(path, &text).len(), 1, "{text}");
        }
        assert!(found(path, &manifest("innkeeper-protocol", "")).is_empty());
    }

    #[test]
    fn a_missing_edge_and_a_stranger_are_caught() {
        assert_eq!(
            found("crates/innkeeper-host/Cargo.toml", &manifest("innkeeper-host", "")).len(),
            1
        );
        assert_eq!(found("crates/new/Cargo.toml", &manifest("new", "")).len(), 1);
    }

    #[test]
    fn tests_may_use_the_kit_and_nothing_above() {
        let path = "crates/innkeeper-testkit/Cargo.toml";
        let text =
            manifest("innkeeper-testkit", "[dev-dependencies]\ninnkeeper-host.workspace = true\n");
        assert_eq!(found(path, &text).len(), 1);
        let text = manifest(
            "innkeeper-protocol",
            "[dev-dependencies]\ninnkeeper-testkit.workspace = true\n",
        );
        assert!(found("crates/innkeeper-protocol/Cargo.toml", &text).is_empty());
    }
}
