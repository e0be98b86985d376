//! Long-running tests: starts and stops, process trees, calls with faults, noisy neighbours.
//!
//! The program has several roles. The main process controls, kills and counts; the other processes
//! are instances of the same program and run hosts or remote servers.

mod child_process;
mod resources;

mod coordinator;
mod host_process;

mod kills;

mod lost;

mod calls;

mod noisy_neighbour;

use std::process::ExitCode;
use std::str::FromStr;

use coordinator::Coordinator;

/// First argument of a host process of the cycles.
const HOST_PROCESS_ARG: &str = "__guest";
/// First argument of a host process of the kills.
const KILLS_HOST_PROCESS_ARG: &str = "__kills";
/// First argument of a host process that loses its supervisors.
const LOST_HOST_ARG: &str = "__lost";
/// First argument of the process with the remote servers.
const REMOTE_SERVERS_ARG: &str = "__remotes";
/// First argument of a separate host process with a fault.
const SEPARATE_HOST_ARG: &str = "__elsewhere";
/// First argument of the process with one faulty remote server.
const FAULTY_REMOTE_ARG: &str = "__remote";
/// First argument of the process with the same server without the fault.
const HEALTHY_REMOTE_ARG: &str = "__healthy";

const USAGE: &str = "usage: soak --cycles N | --kills N | --lost N | --calls N | \
                     --noisy-neighbour ROUNDS CALLS THREADS [FAULT …]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        [HOST_PROCESS_ARG, tag] => host_process::serve(tag),
        [KILLS_HOST_PROCESS_ARG, ledger] => kills::host_process::serve(ledger),
        [LOST_HOST_ARG, ledger] => lost::serve(ledger),
        [REMOTE_SERVERS_ARG, dir] => calls::serve_remotes(dir),
        [SEPARATE_HOST_ARG, threads] => {
            parse_number(threads).and_then(noisy_neighbour::serve_separate_host)
        }
        [role @ (FAULTY_REMOTE_ARG | HEALTHY_REMOTE_ARG), scenario] => parse_number(scenario)
            .and_then(|scenario| {
                noisy_neighbour::serve_remote(scenario, role == HEALTHY_REMOTE_ARG)
            }),
        ["--noisy-neighbour", ref numbers @ ..] => {
            let numbers: Result<Vec<usize>, _> =
                numbers.iter().map(|text| parse_number(text)).collect();
            numbers.and_then(|numbers| noisy_neighbour::run(&numbers))
        }
        ["--cycles", count] => parse_number(count).and_then(run_cycles),
        ["--kills", count] => parse_number(count).and_then(kills::run),
        ["--lost", count] => parse_number(count).and_then(lost::run),
        ["--calls", count] => parse_number(count).and_then(calls::run),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            print_warning(&format!("error: {problem}"));
            ExitCode::FAILURE
        }
    }
}

fn parse_number<T: FromStr>(count: &str) -> Result<T, String> {
    count.parse().map_err(|_| format!("invalid count `{count}`"))
}

fn run_cycles(count: usize) -> Result<(), String> {
    let mut coordinator = Coordinator::new()?;
    for cycle in 0..count {
        coordinator.run_cycle(cycle)?;
        if (cycle + 1) % 100 == 0 {
            print_line(&format!("{} of {count} cycles", cycle + 1));
        }
    }
    coordinator.finish()
}

#[expect(clippy::print_stdout, reason = "the processes communicate over stdout")]
fn print_line(line: &str) {
    println!("{line}");
}

#[expect(clippy::print_stderr, reason = "the task prints errors")]
fn print_warning(line: &str) {
    eprintln!("{line}");
}
