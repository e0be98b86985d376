//! Starts and stops three hostile servers many times, with kills, and looks at what is left.
//!
//! The program plays two parts: the keeper counts, kills and looks; guests, the same program
//! started again, run the host.

mod guest;
mod keeper;
mod observe;

use std::process::ExitCode;

use keeper::Keeper;

/// The first argument of a guest.
const GUEST: &str = "__guest";
/// Cycles when nothing is said.
const CYCLES: usize = 1000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        [GUEST, nonce] => guest::serve(nonce),
        [] => soak(CYCLES),
        ["--cycles", count] => match count.parse() {
            Ok(count) => soak(count),
            Err(_) => Err(format!("`{count}` is no number of cycles")),
        },
        _ => Err("usage: soak [--cycles N]".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            warn(&format!("error: {problem}"));
            ExitCode::FAILURE
        }
    }
}

fn soak(count: usize) -> Result<(), String> {
    let mut keeper = Keeper::new()?;
    for cycle in 0..count {
        keeper.cycle(cycle)?;
        if (cycle + 1) % 100 == 0 {
            say(&format!("{} of {count} cycles", cycle + 1));
        }
    }
    keeper.finish()
}

#[expect(clippy::print_stdout, reason = "the two parts talk over it, and so does the chore")]
fn say(line: &str) {
    println!("{line}");
}

#[expect(clippy::print_stderr, reason = "the chore tells what went wrong")]
fn warn(line: &str) {
    eprintln!("{line}");
}
