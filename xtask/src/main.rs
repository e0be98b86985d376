//! Development tasks: `cargo xtask COMMAND`. CI runs `test` and nothing else.

mod figures;
mod output;
mod program;
mod repository;
mod source;
mod steps;

mod tidy;

mod requirements;

mod api;
mod attacks;

mod dependencies;

mod test;

mod conformance;

mod chart;

mod toolcalls;

mod bench_repair;
mod providers;

mod eval_grammars;

mod eval_local_model;

mod eval_guard;

mod eval_tool_search;

mod trajectories;

mod fuzz;
mod goldens;

mod properties;

mod bench;
mod dist;

mod soak;

mod simulate;

mod noisy_neighbour;

mod replicas;

mod servers;

mod coverage;

mod mutants;

mod platforms;
mod python;

use std::process::ExitCode;

/// The result of a task; the error is one sentence.
type TaskResult<T = ()> = Result<T, String>;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test                      everything CI runs; installs the servers the tests need
  install                   installs test servers, benchmark data and a small model
  tidy                      the project's own lints
  requirements [--owed]     each requirement with its tests; `--owed` lists requirements without one
  dependencies              sources, licences, versions and advisories of other authors' packages
  api [--write]             the public items of each library; writes crates/NAME/api.txt
  attacks [--write]         the attacks of the tests by surface; writes docs/attacks.md
  conformance [REVISION …]  the official MCP conformance suite, with this host as the client and
                            this gateway as the server
  chart                     the chart and the container file: schemas of Kubernetes, security rules,
                            refused values, and the rendered configuration in the real program
  toolcalls                 a public suite for tool-call parsers
  providers [FILE …]        the providers' own clients against the scripted model; FILE has recorded
                            requests to validate, one JSON object per line
  goldens [PART]            records the constructed goldens of tests/goldens again, or those whose file
                            contains PART, with the scripted model and real servers
  bench-repair [--entries N] [--seed N]
                            repair and correction of malformed tool calls, beside two published
                            parsers; writes docs/reports/call-recovery.md
  eval-grammars             a small model writes a hundred tool calls under our grammars
  eval-local-model [--write]
                            thirty tasks for a small model over every provider API
  eval-guard [--benign]     a public benchmark of prompt-injection defences, through the gateway
  eval-tool-search [--write | --tuning]
                            the search for tools on two public benchmarks; `--tuning` measures the
                            half of the tasks on which the weights are tuned
  trajectories [--tenth | --write]
                            golden actions of public benchmarks through the host and the agent; each
                            result and final state must equal those of the benchmark's own code
  bench [--rounds N] [--seconds S] [--no-log] [--peers-only] [--json] [--write]
                            calls, starts and memory beside a raw pipe and the official SDKs
  bench --gateway [--rounds N] [--seconds S] [--json] [--write]
  bench --toolcalls [--rounds N] [--seconds S] [--peers-only] [--json] [--write]
                            the tool-call parser beside a byte search and published parsers
  bench [--toolcalls | --gateway] --against DIR [--rounds N] [--seconds S] [--no-log] [--bound PERCENT]
                            the host, gateway or parser beside those of another checkout, in pairs of
                            runs; fails if a figure is worse by more than PERCENT, 10 by default
  dist                      the program as it is released, with the functions that a start calls side
                            by side; writes target/dist/innkeeper
  soak [--cycles [N] | --kills [N] | --lost [N] | --calls [N]]
                            starts and stops, process trees killed, calls with injected faults; all
                            three in full by default
  simulate [--seeds N] [--first SEED]
                            the host in a simulated world made from seeds, 100000 by default; one
                            seed alone prints its trace
  noisy-neighbour [--rounds N] [--calls N] [--threads N] [FAULT …]
                            calls to a healthy server while another server has each known fault
  replicas [--calls N] [--seed N] [--write]
                            calls to three replicas while replicas and their Redis fail, 10000 by
                            default, judged from their history; writes docs/reports/replicas.md
  fuzz [--seconds N] [TARGET …]
                            the fuzz targets, 600 seconds each by default
  python [--wheel | --sdist] [OPTION …]
                            the tests of the Python package; `--wheel` tests the wheel in a fresh
                            environment of each Python of INNKEEPER_PYTHONS, and `--sdist` the source
                            distribution, which pip builds there; OPTION is pytest's
  python --frameworks [NAME …]
                            agents of other packages over a host, each with its real packages
  python --toolcalls        the suite of `toolcalls` through Python
  properties [--rounds N | --seed S]
                            the property tests with fresh seeds, 10 by default; CI uses a fixed seed
  platforms                 type-checks the shipped crates for Windows and macOS
  servers [--write] [NAME …]
                            published servers, listed, called and stopped, beside two other hosts;
                            writes docs/reports/servers.md
  servers --tasks [--write]
                            ten everyday tasks with the same hosts; writes
                            docs/reports/daily-tasks.md
  coverage [--write | --python]
                            line coverage of the product's modules; `--python` measures those of the
                            Python package alone
  mutants [--sample N] [--seed S] [--crate NAME …]
                            the tests against N code changes per crate, 60 by default, chosen by a
                            seed; writes docs/reports/mutants.md";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (verb, rest) = arguments.split_first().map_or(("", &[][..]), |(verb, rest)| (*verb, rest));
    let outcome = match verb {
        "test" => test::run(rest),
        "install" => test::install_test_servers(rest),
        "servers" => servers::run(rest),
        "tidy" => tidy::run(rest),
        "requirements" | "rows" => requirements::run(rest),
        "dependencies" => dependencies::run(rest),
        "api" => api::run(rest),
        "attacks" => attacks::run(rest),
        "conformance" => conformance::run(rest),
        "chart" => chart::run(rest),
        "toolcalls" => toolcalls::run(rest),
        "trajectories" => trajectories::run(rest),
        "goldens" => goldens::run(rest),
        "providers" => providers::run(rest),
        "bench-repair" => bench_repair::run(rest),
        "eval-grammars" => eval_grammars::run(rest),
        "eval-local-model" => eval_local_model::run(rest),
        "eval-guard" => eval_guard::run(rest),
        "eval-tool-search" => eval_tool_search::run(rest),
        "bench" => bench::run(rest),
        "dist" => dist::run(rest),
        "soak" => soak::run(rest),
        "simulate" => simulate::run(rest),
        "replicas" => replicas::run(rest),
        "noisy-neighbour" => noisy_neighbour::run(rest),
        "fuzz" => fuzz::run(rest),
        "python" => python::run(rest),
        "properties" => properties::run(rest),
        "platforms" => platforms::run(rest),
        "coverage" => coverage::run(rest),
        "mutants" => mutants::run(rest),
        "" | "help" | "--help" | "-h" => {
            output::print_line(USAGE);
            return ExitCode::SUCCESS;
        }
        _ => {
            output::print_error(&format!("`{verb}` is not a command\n\n{USAGE}"));
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            output::print_error(&problem);
            ExitCode::FAILURE
        }
    }
}
