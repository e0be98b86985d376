//! The project's chores: `cargo xtask VERB`. What CI runs is `test`, and nothing else.

mod page;
mod program;
mod repository;
mod say;
mod source;
mod steps;

mod tidy;

mod rows;

mod test;

mod conformance;

mod toolcalls;

mod providers;
mod recovery;

mod generations;

mod models;

mod defence;

mod fuzz;

mod bench;

mod soak;

mod simulate;

mod neighbour;

mod coverage;

mod platforms;

use std::process::ExitCode;

/// What a chore comes back with: nothing, or a sentence that says what is wrong.
type Chore<T = ()> = Result<T, String>;

const USAGE: &str = "\
usage: cargo xtask VERB

  test                      everything CI runs; provides the servers the tests need
  servers                   puts in place what tests talk to: servers, benchmarks, a small model
  tidy                      the house rules
  rows [--owed]             each requirement with its tests; `--owed` lists those still due
  conformance [REVISION …]  the official suite with our host as the client
  toolcalls                 a public suite for parsers of tool calls with our interceptor
  providers [FILE …]        the providers' own clients with the scripted model; their schemas with
                            recorded requests, a line of JSON each
  recovery [--entries N] [--seed N]
                            a benchmark's calls with what models do wrong: what is put right, what
                            is asked for again, beside two published parsers; writes its page
  generations               a small model writes a hundred calls by our grammars
  models [--write]          thirty tasks for a small model over every wire it is served over
  defence [--benign]        a public bench of defences with our host before each of its servers
  bench [--rounds N] [--seconds S] [--no-log] [--peers-only] [--json] [--write]
                            the host beside a bare pipe and beside the official SDK
  bench --toolcalls [--rounds N] [--seconds S] [--peers-only] [--json] [--write]
                            the interceptor beside a byte search and published parsers
  soak [--cycles [N] | --kills [N] | --calls [N]]
                            starts and stops, ends of hostile trees, calls with faults; all of
                            them in full unless told otherwise
  simulate [--seeds N] [--first SEED]
                            the host against servers and faults made up from seeds, 100000 unless
                            told otherwise; one seed alone shows what happens in it
  neighbour [--rounds N] [--calls N] [--threads N] [FAULT …]
                            calls to a healthy server while the one beside it has each fault of
                            the catalogue
  fuzz [--seconds N] [TARGET …]
                            the fuzz targets, 600 seconds each unless told otherwise
  platforms                 what ships, checked for Windows and macOS
  coverage [--write]        which lines of the product the tests run, a row per room";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (verb, rest) = arguments.split_first().map_or(("", &[][..]), |(verb, rest)| (*verb, rest));
    let outcome = match verb {
        "test" => test::run(rest),
        "servers" => test::servers(rest),
        "tidy" => tidy::run(rest),
        "rows" => rows::run(rest),
        "conformance" => conformance::run(rest),
        "toolcalls" => toolcalls::run(rest),
        "providers" => providers::run(rest),
        "recovery" => recovery::run(rest),
        "generations" => generations::run(rest),
        "models" => models::run(rest),
        "defence" => defence::run(rest),
        "bench" => bench::run(rest),
        "soak" => soak::run(rest),
        "simulate" => simulate::run(rest),
        "neighbour" => neighbour::run(rest),
        "fuzz" => fuzz::run(rest),
        "platforms" => platforms::run(rest),
        "coverage" => coverage::run(rest),
        "" | "help" | "--help" | "-h" => {
            say::line(USAGE);
            return ExitCode::SUCCESS;
        }
        _ => {
            say::problem(&format!("`{verb}` is no chore\n\n{USAGE}"));
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            say::problem(&problem);
            ExitCode::FAILURE
        }
    }
}
