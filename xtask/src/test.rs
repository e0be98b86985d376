//! `test`: everything CI runs. Provides what the tests need while the code compiles.

mod machine;
mod model;
mod servers;
pub(crate) mod suite;
mod tools;

use std::thread;

use crate::program::{Program, root};
use crate::steps::Steps;
use crate::{Chore, conformance, fuzz, providers, rows, soak, tidy, toolcalls};

pub(crate) use servers::{benchmarks, install, npm, once, packages, provide, venv};
pub(crate) use tools::Tool;

/// How everything that the tests need is built.
pub(crate) const BUILD: &str = "build --locked --workspace --all-targets --features xtask/soak";

/// Workspaces of their own, formatted like the rest where they are there.
const BESIDE: &[&str] = &["bench/Cargo.toml", "bench/interceptor/Cargo.toml", "fuzz/Cargo.toml"];
/// Seconds of each fuzz target in the short run: the full one has six hundred.
const FUZZ_SECONDS: u64 = 10;

/// Runs every step; one that fails does not hide the next.
///
/// # Errors
///
/// The machine lacks something, or a step failed.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    if let Some(argument) = arguments.first() {
        return Err(format!("`test` takes no `{argument}`"));
    }
    machine::check()?;
    let providing = thread::spawn(|| provide().and_then(|()| suite::provide()));
    let fetching = thread::spawn(|| Tool::NEXTEST.provide());
    let mut steps = Steps::default();
    steps.step("format", formatted);
    steps.step("tidy", || tidy::run(&[]));
    steps.step("rows", || rows::run(&[]));
    steps.step("lint", || {
        let lint = "clippy --locked --workspace --all-targets --features xtask/soak -- -D warnings";
        Program::cargo(lint).run()
    });
    let built = steps.step("build", || Program::cargo(BUILD).run());
    steps.step("servers", || joined(providing));
    if built {
        steps.step("local model", model::provide);
    }
    if built && steps.step("test runner", || joined(fetching).map(drop)) {
        steps.step("tests", || {
            let line = "run --locked --workspace --features xtask/soak --profile ci";
            Tool::NEXTEST.provide()?.line(line).run()
        });
        steps.step("doctests", || Program::cargo("test --locked --doc --package innkeeper").run());
        steps.step("conformance", || conformance::run(&[]));
        steps.step("tool calls", || toolcalls::run(&[]));
        steps.step("providers", || providers::run(&[]));
        steps.step("soak", soak::short);
        steps.step("fuzz", || fuzz::short(FUZZ_SECONDS));
    }
    steps.finish()
}

/// Puts the published servers and the local model in place, for tests run by hand.
///
/// # Errors
///
/// The machine lacks something, or an installation failed.
pub(crate) fn servers(arguments: &[&str]) -> Chore {
    if let Some(argument) = arguments.first() {
        return Err(format!("`servers` takes no `{argument}`"));
    }
    provide()?;
    Program::cargo("build --locked --package innkeeper-cli").run()?;
    model::provide()
}

fn joined<T>(work: thread::JoinHandle<Chore<T>>) -> Chore<T> {
    work.join().unwrap_or_else(|_| Err("a thread of this chore panicked".to_owned()))
}

fn formatted() -> Chore {
    Program::cargo("fmt --all --check").run()?;
    for manifest in BESIDE.iter().filter(|manifest| root().join(manifest).exists()) {
        Program::cargo("fmt --check --manifest-path").arg(manifest).run()?;
    }
    Ok(())
}
