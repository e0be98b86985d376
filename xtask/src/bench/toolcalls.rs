//! `bench --toolcalls`: the interceptor beside a byte search and two published parsers.

mod goal;
mod input;
mod plan;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::plan::Entry;
use super::report::{Samples, number};
use super::{Wish, order};
use crate::program::{Program, relative, root};
use crate::test::{npm, once};
use crate::{Chore, page, say};
use plan::{CASES, Case, Peer};

/// Rounds unless told otherwise: a published parser alone needs half a minute of each.
pub(super) const ROUNDS: usize = 5;

const PACKAGE: &str = include_str!("../../../bench/interceptor/node/package.json");
const LOCK: &str = include_str!("../../../bench/interceptor/node/package-lock.json");

/// Builds the program, puts the package in place, runs the rounds and prints the tables; gives
/// what the page says.
///
/// # Errors
///
/// Something does not build or run, or a parser told something else than what was in the text. A
/// goal that is missed is shown, not an error.
pub(super) fn run(wish: &Wish) -> Chore<String> {
    let home = root().join("target/bench-interceptor");
    fs::create_dir_all(&home).map_err(|error| format!("`{}`: {error}", relative(&home)))?;
    Program::cargo("build --release --locked --manifest-path bench/interceptor/Cargo.toml")
        .arg("--target-dir")
        .path(&home)
        .run()?;
    once(&home.join("npm"), &format!("{PACKAGE}{LOCK}"), |folder| npm(folder, PACKAGE, LOCK))?;
    let before = load();
    let mut samples = Samples::default();
    for round in 0..wish.rounds() {
        if !wish.json {
            say::line(format_args!("round {} of {}", round + 1, wish.rounds()));
        }
        for case in CASES {
            let text = home.join("text");
            input::write(&text, case)?;
            for peer in order(case.peers, round).filter(|peer| wish.ours || **peer != Peer::Ours) {
                let entry = Entry { case: case.name, peer: peer.name(), runtime: "" };
                samples.add(&entry, &measure(&home, &text, case, *peer, wish.seconds)?);
            }
        }
    }
    let (rows, goals) = (rows(&samples), goal::rows(&samples));
    if wish.json {
        say::line(samples.json());
    } else {
        say::line(format_args!("\n{}\n{}", say::table(&rows), say::table(&goals)));
    }
    Ok(format!(
        "{}, load {before} before and {} after, {} rounds, medians.\n\n{}\n{}",
        page::machine(),
        load(),
        wish.rounds(),
        page::table(&rows),
        page::table(&goals)
    ))
}

/// One parser over one text. What it tells of the text has to be the text.
fn measure(home: &Path, text: &Path, case: &Case, peer: Peer, seconds: f64) -> Chore<Value> {
    let program = match peer {
        Peer::Package => Program::new("node")
            .path(&root().join("bench/interceptor/node/peer.mjs"))
            .within(&home.join("npm")),
        Peer::Ours | Peer::Memchr | Peer::Memchr3 | Peer::Crate => {
            let program: PathBuf = home.join("release/interceptor");
            Program::new(program).arg(case.word(peer))
        }
    };
    let program = program.path(text).line(&format!("{} {seconds}", case.piece));
    let beside = home.join("beside");
    let has_beside = peer == Peer::Ours && input::write_beside(&beside, case)?;
    let program = if has_beside { program.path(&beside) } else { program };
    let line = program.output()?;
    let line: Value = serde_json::from_str(&line)
        .map_err(|error| format!("`{}` printed no JSON: {error}", peer.name()))?;
    if line["told"].as_u64() != u64::try_from(case.bytes).ok() {
        let told = &line["told"];
        let (peer, name, bytes) = (peer.name(), case.name, case.bytes);
        return Err(format!("`{peer}` told {told} bytes of `{name}`, and {bytes} are in it"));
    }
    Ok(line)
}

/// How busy the machine is, over the last minute.
fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or_default().to_owned()
}

/// A line for each figure of each case.
fn rows(samples: &Samples) -> Vec<Vec<String>> {
    let peers = [Peer::Ours, Peer::Memchr, Peer::Memchr3, Peer::Crate, Peer::Package];
    let mut heading = vec![String::new()];
    heading.extend(peers.iter().map(|peer| peer.name().to_owned()));
    let mut rows = vec![heading];
    for case in CASES {
        for figure in case.figures() {
            let mut row = vec![format!("{}: {}", case.name, figure.called)];
            row.extend(peers.iter().map(|peer| {
                let median = samples.median(case.name, peer.name(), "", figure.key);
                number(median.map(|median| median / figure.divisor))
            }));
            rows.push(row);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_figure_of_each_case_has_a_line_with_a_dash_for_who_was_not_measured() {
        let mut samples = Samples::default();
        let entry = Entry { case: CASES[0].name, peer: Peer::Ours.name(), runtime: "" };
        samples.add(&entry, &json!({"ms": 1.5}));
        let rows = rows(&samples);
        assert_eq!(rows.len(), 1 + CASES.iter().map(|case| case.figures().len()).sum::<usize>());
        assert_eq!(rows[1][1..], ["1.50", "–", "–", "–", "–"]);
    }
}
