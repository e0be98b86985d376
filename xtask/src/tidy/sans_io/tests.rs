//! Tests of the rule, and of the crates that it is for.

use super::*;
use crate::tidy::violations;

/// Packages that do I/O, read a clock or start threads.
const SYSTEM_PACKAGES: &[&str] = &[
    "tokio", "mio", "socket2", "hyper", "reqwest", "rustls", "rayon", "chrono", "time", "rustix",
    "nix", "notify", "tempfile",
];

/// Returns the packages that a crate needs, without those that only its tests need.
fn needed_packages(repository: &Repository, name: &str) -> Vec<String> {
    let lock: toml::Table = repository.text("Cargo.lock").unwrap().parse().unwrap();
    let mut needed = vec![name.to_owned()];
    let mut at = 0;
    while let Some(name) = needed.get(at).cloned() {
        at += 1;
        for dependency in direct_dependencies(repository, &lock, &name) {
            if !needed.contains(&dependency) {
                needed.push(dependency);
            }
        }
    }
    needed
}

/// The lock file does not tell the dependencies of a crate's tests apart, its manifest does.
fn direct_dependencies(repository: &Repository, lock: &toml::Table, name: &str) -> Vec<String> {
    if let Some(manifest) = repository.text(&format!("crates/{name}/Cargo.toml")) {
        let manifest: toml::Table = manifest.parse().unwrap();
        let dependencies = manifest.get("dependencies").and_then(|table| table.as_table());
        return dependencies.into_iter().flat_map(|table| table.keys().cloned()).collect();
    }
    let packages = lock["package"].as_array().unwrap().iter();
    let named = packages.filter(|package| package["name"].as_str() == Some(name));
    let lists = named.filter_map(|package| package.get("dependencies")?.as_array());
    let names = lists.flatten().filter_map(|name| name.as_str()?.split(' ').next());
    names.map(str::to_owned).collect()
}

/// A build for wasm32 needs a target that cannot be installed everywhere.
/// Proves: S-b5
#[test]
fn the_parser_and_all_that_it_needs_know_no_system() {
    let repository = Repository::load().unwrap();
    let violations = check_sans_io(&repository);
    let of_parser =
        violations.iter().filter(|found| found.path.starts_with("crates/innkeeper-toolcall/"));
    assert_eq!(of_parser.count(), 0);
    let needed = needed_packages(&repository, "innkeeper-toolcall");
    assert!(needed.len() > 5, "{needed:?}");
    for package in SYSTEM_PACKAGES {
        assert!(!needed.iter().any(|needed| needed == package), "{package} of {needed:?}");
    }
}

#[test]
fn a_sans_io_module_that_moved_is_caught() {
    let files =
        [("crates/innkeeper-protocol/src/x.rs", ""), ("crates/innkeeper-toolcall/src/x.rs", "")];
    assert_eq!(violations(check_sans_io, &files).len(), SANS_IO_PATHS.len() - files.len());
}

#[test]
fn a_clock_in_a_sans_io_module_is_caught_and_elsewhere_it_is_not() {
    let text = "//! tokio\nuse std::time::Instant;\n#[cfg(test)]\nmod tests { use std::fs; }\n";
    let files = [
        ("crates/innkeeper-protocol/src/x.rs", text),
        ("crates/innkeeper-golden/src/x.rs", ""),
        ("crates/innkeeper-schema/src/x.rs", ""),
        ("crates/innkeeper-toolcall/src/x.rs", ""),
        ("crates/innkeeper-host/src/lifecycle.rs", "use tokio::time;\n"),
        ("crates/innkeeper-host/src/start.rs", text),
        ("crates/innkeeper-agent/src/conversation.rs", ""),
        ("crates/innkeeper-agent/src/provider.rs", ""),
        ("crates/innkeeper-agent/src/run.rs", ""),
        ("crates/innkeeper-agent/src/server_requests/form.rs", ""),
    ];
    assert_eq!(
        violations(check_sans_io, &files),
        [
            "crates/innkeeper-host/src/lifecycle.rs:1: sans-I/O module uses `tokio`",
            "crates/innkeeper-protocol/src/x.rs:2: sans-I/O module uses `Instant`",
        ]
    );
}
