//! The rule about pure rooms: no I/O, no clock, no randomness, no log.

use super::Offence;
use crate::repository::{Repository, is_test_file};
use crate::source::has_word;

/// Paths that are pure, or begin the paths that are.
const PURE: &[&str] = &[
    "crates/innkeeper-protocol/src/",
    "crates/innkeeper-toolcall/src/",
    "crates/innkeeper-host/src/lifecycle.rs",
    "crates/innkeeper-agent/src/conversation",
    "crates/innkeeper-agent/src/provider",
    "crates/innkeeper-agent/src/turn",
];

/// Names that bring the world in.
const WORLDLY: &[&str] = &[
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

/// Pure rooms name nothing that brings the world in.
pub(super) fn pure_rooms(repository: &Repository) -> Vec<Offence> {
    let gone =
        PURE.iter().filter(|room| !repository.sources().any(|(path, _)| path.starts_with(**room)));
    let mut offences: Vec<Offence> =
        gone.map(|room| Offence::new(room, 0, "is a pure room that is not there")).collect();
    for (path, source) in repository.sources() {
        if is_test_file(path) || !PURE.iter().any(|room| path.starts_with(room)) {
            continue;
        }
        for (at, line) in source.product_lines() {
            for name in WORLDLY.iter().filter(|name| has_word(line, name)) {
                offences.push(Offence::new(path, at, format!("a pure room uses `{name}`")));
            }
        }
    }
    offences
}

#[cfg(test)]
mod tests {
    use super::super::offences;
    use super::*;

    #[test]
    fn a_pure_room_that_moved_away_is_caught() {
        let files = [
            ("crates/innkeeper-protocol/src/x.rs", ""),
            ("crates/innkeeper-toolcall/src/x.rs", ""),
        ];
        assert_eq!(offences(pure_rooms, &files).len(), PURE.len() - files.len());
    }

    #[test]
    fn a_clock_in_a_pure_room_is_caught_and_elsewhere_it_is_not() {
        let text = "//! tokio\nuse std::time::Instant;\n#[cfg(test)]\nmod tests { use std::fs; }\n";
        let files = [
            ("crates/innkeeper-protocol/src/x.rs", text),
            ("crates/innkeeper-toolcall/src/x.rs", ""),
            ("crates/innkeeper-host/src/lifecycle.rs", "use tokio::time;\n"),
            ("crates/innkeeper-host/src/start.rs", text),
            ("crates/innkeeper-agent/src/conversation.rs", ""),
            ("crates/innkeeper-agent/src/provider.rs", ""),
            ("crates/innkeeper-agent/src/turn.rs", ""),
        ];
        assert_eq!(
            offences(pure_rooms, &files),
            [
                "crates/innkeeper-host/src/lifecycle.rs:1: a pure room uses `tokio`",
                "crates/innkeeper-protocol/src/x.rs:2: a pure room uses `Instant`",
            ]
        );
    }
}
