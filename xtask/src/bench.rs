//! `bench`: the host beside a bare pipe and the official SDK, in interleaved rounds.

mod goal;
mod plan;
mod report;
mod toolcalls;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Program, root};
use crate::{Chore, page, say};
use plan::{Entry, PLAN};
use report::Samples;

/// Rounds unless told otherwise; each figure is the median of them. Many short ones: the speed of a
/// shared machine changes within seconds.
const ROUNDS: usize = 15;
/// Seconds each client is measured in a round.
const SECONDS: f64 = 0.3;
/// Where the figures are written for people.
const PAGE: &str = "docs/benchmarks.md";

struct Wish {
    rounds: Option<usize>,
    seconds: f64,
    json: bool,
    write: bool,
    ours: bool,
    log: bool,
    toolcalls: bool,
}

/// Builds the measuring programs, runs the rounds and prints the table.
///
/// # Errors
///
/// They do not build, or one of them fails. A goal that is missed is shown, not an error: the
/// figures of a shared machine are for people to judge.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    let wish = Wish::parse(arguments)?;
    if wish.toolcalls {
        let figures = toolcalls::run(&wish)?;
        return if wish.write { page::write(PAGE, "interceptor", &figures) } else { Ok(()) };
    }
    let programs = build(&wish)?;
    let mut samples = Samples::default();
    for round in 0..wish.rounds() {
        if !wish.json {
            say::line(format_args!("round {} of {}", round + 1, wish.rounds()));
        }
        for entries in PLAN {
            for entry in order(entries, round).filter(|entry| wish.ours || !entry.is_ours()) {
                samples.add(entry, &measure(&programs, entry, &wish)?);
            }
        }
    }
    if wish.json {
        say::line(samples.json());
    } else {
        say::line(format_args!("\n{}\n{}", samples.table(), goal::table(&samples)));
    }
    if wish.write { page::write(PAGE, "figures", &figures(&wish, &samples)) } else { Ok(()) }
}

impl Wish {
    fn parse(arguments: &[&str]) -> Chore<Self> {
        let mut wish = Self {
            rounds: None,
            seconds: SECONDS,
            json: false,
            write: false,
            ours: true,
            log: true,
            toolcalls: false,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("`{argument}` needs a value"));
            let wrong = |_| format!("`{argument}` needs a number");
            match *argument {
                "--rounds" => wish.rounds = Some(value()?.parse().map_err(|_| wrong(()))?),
                "--seconds" => wish.seconds = value()?.parse().map_err(|_| wrong(()))?,
                "--json" => wish.json = true,
                "--write" => wish.write = true,
                "--peers-only" => wish.ours = false,
                "--no-log" => wish.log = false,
                "--toolcalls" => wish.toolcalls = true,
                _ => return Err(format!("`bench` takes no `{argument}`")),
            }
        }
        match wish.rounds {
            Some(0) => Err("`--rounds` needs one at least".to_owned()),
            Some(_) | None => Ok(wish),
        }
    }

    fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.toolcalls { toolcalls::ROUNDS } else { ROUNDS })
    }
}

/// Each round another peer goes first, and every other round they go backwards.
fn order<T>(entries: &[T], round: usize) -> impl Iterator<Item = &T> {
    let count = entries.len();
    (0..count).map(move |at| {
        let at = if round.is_multiple_of(2) { at } else { count - 1 - at };
        &entries[(at + round / 2) % count]
    })
}

fn build(wish: &Wish) -> Chore<PathBuf> {
    let target = root().join("target/bench");
    // The shim goes beside the host's program, as an application ships it.
    let ours = "--features ours --package innkeeper-host";
    for client in ["--features sdk"].into_iter().chain(wish.ours.then_some(ours)) {
        Program::cargo("build --release --manifest-path bench/Cargo.toml --bins")
            .line("--package innkeeper-bench --no-default-features")
            .line(client)
            .arg("--target-dir")
            .path(&target)
            .run()?;
    }
    Ok(target.join("release"))
}

fn measure(programs: &Path, entry: &Entry, wish: &Wish) -> Chore<Value> {
    let program = format!("peer-{}", entry.peer);
    let line = Program::new(programs.join(&program))
        .line(&format!("--case {} --runtime {}", entry.case, entry.runtime))
        .line(&format!("--seconds {} --log {}", wish.seconds, if wish.log { "on" } else { "off" }))
        .arg("--echo")
        .path(&programs.join("echo"))
        .output()?;
    serde_json::from_str(&line).map_err(|error| format!("`{program}` printed no JSON: {error}"))
}

/// What the page says of the host.
fn figures(wish: &Wish, samples: &Samples) -> String {
    format!(
        "{}, {} rounds of {} s each, medians.\n\n{}\n{}",
        page::machine(),
        wish.rounds(),
        wish.seconds,
        samples.markdown(),
        goal::markdown_table(samples)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_goes_first_once_and_none_is_left_out() {
        let entries = PLAN[0];
        let mut first = Vec::new();
        for round in 0..entries.len() * 2 {
            let names: Vec<_> =
                order(entries, round).map(|entry| (entry.peer, entry.runtime)).collect();
            let mut sorted = names.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), entries.len());
            first.push(names[0]);
        }
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), entries.len());
    }
}
