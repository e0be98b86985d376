//! A host in a world that a seed makes up: servers in memory, a stopped clock, faults by chance.
//!
//! Everything of the host is real but what lies behind a process's pipes or under a transport. All
//! chance comes from the seed and one thread does everything, so a seed is one course of events:
//! what breaks a wall can be looked at again. `cargo xtask simulate` runs many seeds.

mod application;
mod fault;
mod peer;
mod plan;
mod process;
mod run;
mod street;
mod walls;
mod wire;

pub(crate) use process::{Killer, Process};
pub(crate) use street::street;

/// The seeds that CI runs are in four parts side by side.
const QUARTER: u64 = 250;

/// Where a long run begins, and how many seeds it takes.
const FIRST: &str = "INNKEEPER_SIMULATE_FIRST";
const SEEDS: &str = "INNKEEPER_SIMULATE_SEEDS";

/// Shows the course of events of every seed.
const SHOWN: &str = "INNKEEPER_SIMULATE_SHOW";

fn number(name: &str) -> Option<u64> {
    std::env::var_os(name)?.to_str()?.parse().ok()
}

/// Runs seeds until one breaks a wall, and says how to run that one again.
fn hold(first: u64, count: u64) {
    for seed in first..first + count {
        let seen = run::run(seed);
        if std::env::var_os(SHOWN).is_some() {
            println!("{}", seen.course.join("\n"));
        }
        assert!(
            seen.broken.is_empty(),
            "seed {seed} broke:\n  {}\nsee it again: cargo xtask simulate --first {seed} --seeds 1",
            seen.broken.join("\n  "),
        );
    }
}

#[test]
fn a_thousand_seeds_break_no_wall_first_quarter() {
    hold(0, QUARTER);
}

#[test]
fn a_thousand_seeds_break_no_wall_second_quarter() {
    hold(QUARTER, QUARTER);
}

#[test]
fn a_thousand_seeds_break_no_wall_third_quarter() {
    hold(2 * QUARTER, QUARTER);
}

#[test]
fn a_thousand_seeds_break_no_wall_fourth_quarter() {
    hold(3 * QUARTER, QUARTER);
}

#[test]
fn a_seed_is_one_course_of_events() {
    for seed in [1, 7, 42, 99, 1234, 77_777] {
        let (one, other) = (run::run(seed), run::run(seed));
        assert!(one.course.len() > 5, "seed {seed} did nothing");
        let differs = one.course.iter().zip(&other.course).find(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(one.course.len(), other.course.len(), "seed {seed}");
    }
}

#[test]
#[ignore = "the long run: what `cargo xtask simulate` starts"]
fn the_seeds_that_were_asked_for_break_no_wall() {
    hold(number(FIRST).unwrap_or_default(), number(SEEDS).unwrap_or(4 * QUARTER));
}
