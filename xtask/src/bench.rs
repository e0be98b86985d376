//! `bench`: compares the host with a raw pipe and the official SDKs.

mod against;
mod gateway;
mod goal;
mod report;
mod runs;
mod toolcalls;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::dist::OrderedProgram;
use crate::program::{Program, repository_root};
use crate::test::{install_node_clients, install_python_clients};
use crate::{TaskResult, figures, output};
use report::Samples;
use runs::{BENCH_RUNS, BenchRun, PYTHON_SDK, RMCP, TYPESCRIPT_SDK};

/// Default number of rounds; each figure is the median of all rounds. Many short rounds, because
/// the speed of a shared machine changes within seconds.
const DEFAULT_ROUNDS: usize = 15;
/// Measured seconds per client and round.
const DEFAULT_SECONDS: f64 = 0.3;
/// The page with the published figures.
const PAGE_PATH: &str = "docs/reports/benchmarks.md";

struct BenchArgs {
    rounds: Option<usize>,
    seconds: f64,
    json: bool,
    write: bool,
    include_innkeeper: bool,
    log: bool,
    toolcalls: bool,
    gateway: bool,
    /// Another checkout, whose figures are compared with ours.
    against: Option<String>,
    /// The difference from the other checkout that counts, in percent.
    bound_percent: f64,
}

/// Builds the benchmark programs, runs the rounds and prints the tables.
///
/// # Errors
///
/// A program does not build, or a run fails. A missed goal is reported, not an error: the figures
/// of a shared machine need a person's judgement.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let args = BenchArgs::parse(arguments)?;
    if let Some(directory) = &args.against {
        return against::run(&args, directory);
    }
    if args.toolcalls || args.gateway {
        let (name, figures) = if args.gateway {
            ("gateway", gateway::run(&args)?)
        } else {
            ("parser", toolcalls::run(&args)?)
        };
        return if args.write { figures::write_to_page(PAGE_PATH, name, &figures) } else { Ok(()) };
    }
    let programs = build(&args)?;
    let mut samples = Samples::default();
    for round in 0..args.rounds() {
        if !args.json {
            output::print_line(format_args!("round {} of {}", round + 1, args.rounds()));
        }
        for entries in BENCH_RUNS {
            for entry in interleave(entries, round)
                .filter(|entry| args.include_innkeeper || !entry.is_innkeeper())
                .filter(|entry| entry.is_due(round))
            {
                let client = programs.client(entry.peer);
                samples.add(entry, &measure(client, &programs.rust, entry, &args)?);
            }
        }
    }
    if args.json {
        output::print_line(samples.json());
    } else {
        output::print_line(format_args!(
            "\n{}\n{}",
            samples.terminal_table(),
            goal::terminal_table(&samples)
        ));
    }
    if args.write {
        figures::write_to_page(PAGE_PATH, "figures", &page_text(&args, &samples))
    } else {
        Ok(())
    }
}

impl BenchArgs {
    fn parse(arguments: &[&str]) -> TaskResult<Self> {
        let mut args = Self {
            rounds: None,
            seconds: DEFAULT_SECONDS,
            json: false,
            write: false,
            include_innkeeper: true,
            log: true,
            toolcalls: false,
            gateway: false,
            against: None,
            bound_percent: against::DEFAULT_BOUND_PERCENT,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("`{argument}` needs a value"));
            let wrong = |_| format!("`{argument}` needs a number");
            match *argument {
                "--rounds" => args.rounds = Some(value()?.parse().map_err(|_| wrong(()))?),
                "--seconds" => args.seconds = value()?.parse().map_err(|_| wrong(()))?,
                "--json" => args.json = true,
                "--write" => args.write = true,
                "--peers-only" => args.include_innkeeper = false,
                "--no-log" => args.log = false,
                "--toolcalls" => args.toolcalls = true,
                "--gateway" => args.gateway = true,
                "--against" => args.against = Some((*value()?).to_owned()),
                "--bound" => args.bound_percent = value()?.parse().map_err(|_| wrong(()))?,
                _ => return Err(format!("`bench` takes no `{argument}`")),
            }
        }
        if args.against.is_some() {
            against::check(&args)?;
        }
        match args.rounds {
            Some(0) => Err("`--rounds` must be at least 1".to_owned()),
            Some(_) | None => Ok(args),
        }
    }

    fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.against.is_some() {
            against::MIN_ROUNDS
        } else if self.toolcalls {
            toolcalls::DEFAULT_ROUNDS
        } else if self.gateway {
            gateway::DEFAULT_ROUNDS
        } else {
            DEFAULT_ROUNDS
        })
    }
}

/// Rotates the order of the clients per round, and reverses it every other round.
fn interleave<T>(entries: &[T], round: usize) -> impl Iterator<Item = &T> {
    let count = entries.len();
    (0..count).map(move |at| {
        let at = if round.is_multiple_of(2) { at } else { count - 1 - at };
        &entries[(at + round / 2) % count]
    })
}

/// The programs of the clients.
struct ClientPrograms {
    /// The directory of the programs in Rust.
    rust: PathBuf,
    /// The directory of the packages of the TypeScript SDK.
    node_packages: PathBuf,
    /// The Python with the packages of the Python SDK.
    python: PathBuf,
}

fn build(args: &BenchArgs) -> TaskResult<ClientPrograms> {
    let node_packages = install_node_clients()?;
    let python = install_python_clients()?.join("python");
    let rust = build_client(&repository_root(), RMCP)?;
    if args.include_innkeeper {
        OrderedProgram::BenchClient.build()?;
    }
    Ok(ClientPrograms { rust, node_packages, python })
}

/// Builds one client in Rust from a checkout; returns the directory of its program.
fn build_client(checkout: &Path, peer: &str) -> TaskResult<PathBuf> {
    let target = checkout.join("target/bench");
    Program::cargo("build --profile dist --manifest-path bench/Cargo.toml --bins")
        .args("--package innkeeper-bench --no-default-features --features")
        .arg(peer)
        .arg("--target-dir")
        .path_arg(&target)
        .current_dir(checkout)
        .run()?;
    Ok(target.join("dist"))
}

/// The program of a client in Rust.
fn rust_client(directory: &Path, peer: &str) -> Program {
    Program::new(directory.join(format!("peer-{peer}")))
}

impl ClientPrograms {
    /// The program of a client, without arguments.
    fn client(&self, peer: &str) -> Program {
        let peers = repository_root().join("bench/peers");
        match peer {
            TYPESCRIPT_SDK => Program::new("node")
                .path_arg(&peers.join("typescript/peer.mjs"))
                .current_dir(&self.node_packages),
            PYTHON_SDK => Program::new(&self.python).path_arg(&peers.join("python/peer.py")),
            _ => rust_client(&self.rust, peer),
        }
    }
}

/// Runs a client with the server of a directory.
fn measure(
    client: Program,
    directory: &Path,
    entry: &BenchRun,
    args: &BenchArgs,
) -> TaskResult<Value> {
    let line = client
        .args(&format!("--case {} --runtime {}", entry.case, entry.runtime))
        .args(&format!("--seconds {} --log {}", args.seconds, if args.log { "on" } else { "off" }))
        .arg("--echo")
        .path_arg(&directory.join("echo"))
        .output()?;
    serde_json::from_str(&line)
        .map_err(|error| format!("the client `{}` did not print JSON: {error}", entry.peer))
}

/// The text of the page's generated block.
fn page_text(args: &BenchArgs, samples: &Samples) -> String {
    format!(
        "{}, {} rounds of {} s each, medians.\n\n{}\n{}",
        figures::describe_machine(),
        args.rounds(),
        args.seconds,
        samples.markdown_table(),
        goal::markdown_table(samples)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_goes_first_once_and_none_is_left_out() {
        let entries = BENCH_RUNS[0];
        let mut first = Vec::new();
        for round in 0..entries.len() * 2 {
            let names: Vec<_> =
                interleave(entries, round).map(|entry| (entry.peer, entry.runtime)).collect();
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
