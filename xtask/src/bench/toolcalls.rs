//! `bench --toolcalls`: compares the tool-call parser with byte searches and published parsers.

pub(super) mod cases;
mod goal;
pub(super) mod input;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::report::{Samples, format_number};
use super::runs::BenchRun;
use super::{BenchArgs, interleave};
use crate::program::{Program, relative_path, repository_root};
use crate::test::{install_npm, install_once};
use crate::{TaskResult, figures, output};
use cases::{BenchParser, CASES, ParserCase};

/// Default number of rounds: one published parser alone needs half a minute per round.
pub(super) const DEFAULT_ROUNDS: usize = 5;

const PACKAGE_JSON: &str = include_str!("../../../bench/parser/node/package.json");
const PACKAGE_LOCK: &str = include_str!("../../../bench/parser/node/package-lock.json");

/// Builds the program, installs the package, runs the rounds and prints the tables; returns the
/// text of the page.
///
/// # Errors
///
/// A program does not build or run, or a parser reports another number of bytes than the text has.
/// A missed goal is reported, not an error.
pub(super) fn run(args: &BenchArgs) -> TaskResult<String> {
    let home = build(&repository_root())?;
    install_once(&home.join("npm"), &format!("{PACKAGE_JSON}{PACKAGE_LOCK}"), |dir| {
        install_npm(dir, PACKAGE_JSON, PACKAGE_LOCK)
    })?;
    let before = load_average();
    let mut samples = Samples::default();
    for round in 0..args.rounds() {
        if !args.json {
            output::print_line(format_args!("round {} of {}", round + 1, args.rounds()));
        }
        for case in CASES {
            let text = home.join("text");
            input::write_text(&text, case)?;
            for peer in interleave(case.parsers, round)
                .filter(|peer| args.include_innkeeper || **peer != BenchParser::Innkeeper)
            {
                let entry = BenchRun { case: case.name, peer: peer.name(), runtime: "" };
                samples.add(&entry, &measure(&home, &text, case, *peer, args.seconds)?);
            }
        }
    }
    let (rows, goals) = (table_rows(&samples), goal::table_rows(&samples));
    if args.json {
        output::print_line(samples.json());
    } else {
        output::print_line(format_args!(
            "\n{}\n{}",
            output::format_table(&rows),
            output::format_table(&goals)
        ));
    }
    Ok(format!(
        "{}, load {before} before and {} after, {} rounds, medians.\n\n{}\n{}",
        figures::describe_machine(),
        load_average(),
        args.rounds(),
        figures::markdown_table(&rows),
        figures::markdown_table(&goals)
    ))
}

/// Builds the program of a checkout; returns the directory of the benchmark.
pub(super) fn build(checkout: &Path) -> TaskResult<PathBuf> {
    let home = checkout.join("target/bench-parser");
    fs::create_dir_all(&home).map_err(|error| format!("`{}`: {error}", relative_path(&home)))?;
    Program::cargo("build --release --locked --manifest-path bench/parser/Cargo.toml")
        .arg("--target-dir")
        .path_arg(&home)
        .current_dir(checkout)
        .run()?;
    Ok(home)
}

/// Runs one parser on one text and checks the number of reported bytes.
pub(super) fn measure(
    home: &Path,
    text: &Path,
    case: &ParserCase,
    peer: BenchParser,
    seconds: f64,
) -> TaskResult<Value> {
    let program = match peer {
        BenchParser::AiSdkPackage => Program::new("node")
            .path_arg(&repository_root().join("bench/parser/node/peer.mjs"))
            .current_dir(&home.join("npm")),
        BenchParser::Innkeeper
        | BenchParser::Memchr
        | BenchParser::Memchr3
        | BenchParser::ToolParserCrate => {
            let program: PathBuf = home.join("release/parser");
            Program::new(program).arg(case.program_name(peer))
        }
    };
    let program = program.path_arg(text).args(&format!("{} {seconds}", case.chunk_bytes));
    let reference = home.join("beside");
    let has_beside =
        peer == BenchParser::Innkeeper && input::write_reference_text(&reference, case)?;
    let program = if has_beside { program.path_arg(&reference) } else { program };
    let line = program.output()?;
    let line: Value = serde_json::from_str(&line)
        .map_err(|error| format!("`{}` did not print JSON: {error}", peer.name()))?;
    if line["seen_bytes"].as_u64() != u64::try_from(case.bytes).ok() {
        let reported = &line["seen_bytes"];
        let (peer, name, bytes) = (peer.name(), case.name, case.bytes);
        return Err(format!("`{peer}` reported {reported} of {bytes} bytes of `{name}`"));
    }
    Ok(line)
}

/// The machine's load average over one minute.
fn load_average() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or_default().to_owned()
}

/// One row per case and figure.
fn table_rows(samples: &Samples) -> Vec<Vec<String>> {
    let peers = [
        BenchParser::Innkeeper,
        BenchParser::Memchr,
        BenchParser::Memchr3,
        BenchParser::ToolParserCrate,
        BenchParser::AiSdkPackage,
    ];
    let mut heading = vec![String::new()];
    heading.extend(peers.iter().map(|peer| peer.name().to_owned()));
    let mut rows = vec![heading];
    for case in CASES {
        for figure in case.columns() {
            let mut row = vec![format!("{}: {}", case.name, figure.heading)];
            row.extend(peers.iter().map(|peer| {
                let median = samples.median(case.name, peer.name(), "", figure.key);
                format_number(median.map(|median| median / figure.divisor))
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
        let entry =
            BenchRun { case: CASES[0].name, peer: BenchParser::Innkeeper.name(), runtime: "" };
        samples.add(&entry, &json!({"ms": 1.5}));
        let rows = table_rows(&samples);
        assert_eq!(rows.len(), 1 + CASES.iter().map(|case| case.columns().len()).sum::<usize>());
        assert_eq!(rows[1][1..], ["1.50", "–", "–", "–", "–"]);
    }
}
