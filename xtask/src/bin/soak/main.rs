//! What takes long: many starts and stops of three servers, ends of hostile trees, calls with faults,
//! calls beside a fault.
//!
//! The program plays several parts: one counts, kills and looks; the others are the same program
//! started again, and run hosts or remote servers.

mod observe;
mod partner;

mod guest;
mod keeper;

mod kills;

mod calls;

mod neighbour;

use std::process::ExitCode;
use std::str::FromStr;

use keeper::Keeper;

/// The first argument of a guest of the cycles.
const GUEST: &str = "__guest";
/// The first argument of a guest that has its trees ended.
const KILLS_GUEST: &str = "__kills";
/// The first argument of the part that runs remote servers.
const REMOTES: &str = "__remotes";
/// The first argument of a host of its own that has a fault.
const ELSEWHERE: &str = "__elsewhere";
/// The first argument of the part that runs one remote server with a fault.
const REMOTE: &str = "__remote";
/// The same without the fault.
const HEALTHY: &str = "__healthy";

const USAGE: &str = "usage: soak --cycles N | --kills N | --calls N | \
                     --neighbour ROUNDS CALLS THREADS [FAULT …]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        [GUEST, nonce] => guest::serve(nonce),
        [KILLS_GUEST, ledger] => kills::guest::serve(ledger),
        [REMOTES, folder] => calls::serve_remotes(folder),
        [ELSEWHERE, threads] => number(threads).and_then(neighbour::serve_elsewhere),
        [part @ (REMOTE | HEALTHY), play] => {
            number(play).and_then(|play| neighbour::serve_remote(play, part == HEALTHY))
        }
        ["--neighbour", ref numbers @ ..] => {
            let numbers: Result<Vec<usize>, _> = numbers.iter().map(|it| number(it)).collect();
            numbers.and_then(|numbers| neighbour::run(&numbers))
        }
        ["--cycles", count] => number(count).and_then(cycles),
        ["--kills", count] => number(count).and_then(kills::run),
        ["--calls", count] => number(count).and_then(calls::run),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            warn(&format!("error: {problem}"));
            ExitCode::FAILURE
        }
    }
}

fn number<T: FromStr>(count: &str) -> Result<T, String> {
    count.parse().map_err(|_| format!("`{count}` is no number"))
}

fn cycles(count: usize) -> Result<(), String> {
    let mut keeper = Keeper::new()?;
    for cycle in 0..count {
        keeper.cycle(cycle)?;
        if (cycle + 1) % 100 == 0 {
            say(&format!("{} of {count} cycles", cycle + 1));
        }
    }
    keeper.finish()
}

#[expect(clippy::print_stdout, reason = "the parts talk over it, and so does the chore")]
fn say(line: &str) {
    println!("{line}");
}

#[expect(clippy::print_stderr, reason = "the chore tells what went wrong")]
fn warn(line: &str) {
    eprintln!("{line}");
}
