//! Checks that sans-I/O modules use no I/O, clock, randomness or log.

use super::Violation;
use crate::repository::{Repository, is_test_file};
use crate::source::has_word;

/// Paths, or prefixes of paths, of sans-I/O modules.
const SANS_IO_PATHS: &[&str] = &[
    "crates/innkeeper-golden/src/",
    "crates/innkeeper-protocol/src/",
    "crates/innkeeper-schema/src/",
    "crates/innkeeper-toolcall/src/",
    "crates/innkeeper-host/src/lifecycle.rs",
    "crates/innkeeper-agent/src/conversation",
    "crates/innkeeper-agent/src/provider",
    "crates/innkeeper-agent/src/run",
    "crates/innkeeper-agent/src/server_requests/form",
];

/// Names that sans-I/O modules must not use.
const FORBIDDEN_NAMES: &[&str] = &[
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::thread",
    "Instant",
    "SystemTime",
    "tokio",
    "tracing",
    "fastrand",
    "println!",
    "eprintln!",
];

/// Checks that sans-I/O modules use no forbidden name.
pub(super) fn check_sans_io(repository: &Repository) -> Vec<Violation> {
    let missing = SANS_IO_PATHS.iter().filter(|path_prefix| {
        !repository.sources().any(|(path, _)| path.starts_with(**path_prefix))
    });
    let mut violations: Vec<Violation> = missing
        .map(|path_prefix| Violation::new(path_prefix, 0, "sans-I/O module does not exist"))
        .collect();
    for (path, source) in repository.sources() {
        if is_test_file(path)
            || !SANS_IO_PATHS.iter().any(|path_prefix| path.starts_with(path_prefix))
        {
            continue;
        }
        for (at, line) in source.product_lines() {
            for name in FORBIDDEN_NAMES.iter().filter(|name| has_word(line, name)) {
                violations.push(Violation::new(path, at, format!("sans-I/O module uses `{name}`")));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests;
