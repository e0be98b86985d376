//! `test`: runs everything that CI runs, and installs test prerequisites during the build.

mod browser;
mod cargo_tools;
pub(crate) mod conformance_suite;
mod debian_packages;
mod local_model;
mod prerequisites;
mod servers;

use std::thread;

use crate::program::{Program, repository_root};
use crate::steps::Steps;
use crate::{
    TaskResult, chart, conformance, dependencies, fuzz, providers, python, requirements, soak,
    tidy, toolcalls, trajectories,
};

pub(crate) use cargo_tools::CargoTool;
pub(crate) use servers::{
    install_benchmarks, install_chart_tools, install_gateway_peers, install_node_clients,
    install_npm, install_once, install_python_clients, install_servers,
    install_trajectory_benchmarks, install_uv, install_venv, install_venv_for,
    install_venv_with_options,
};

/// The build command of all tests.
pub(crate) const BUILD_ARGS: &str =
    "build --locked --workspace --all-targets --features xtask/soak";

/// The examples of the documentation, with the packages and features of the build.
const DOCTEST_ARGS: &str = "test --locked --doc --workspace --features xtask/soak";

/// The run of tests. Each step with tests has these arguments: another choice of packages has other
/// features, and everything is built again.
const NEXTEST_ARGS: &str = "run --locked --workspace --features xtask/soak --profile ci";

/// The check that the benchmarks compile: they share modules of the command-line program. The common
/// target directory has most of the dependencies from the lint.
const CHECK_BENCHMARKS_ARGS: &str = "check --locked --manifest-path bench/Cargo.toml \
     --no-default-features --features innkeeper -p innkeeper-bench --target-dir target";

/// The lint of the program without libc, which the lint of the workspace sees as an ordinary program.
const LINT_SUPERVISOR_ARGS: &str = "clippy --locked --profile supervisor --package innkeeper-supervisor --lib --bins \
     --target-dir target/supervisor -- -D warnings";

/// Separate workspaces, which are formatted if they exist.
const SEPARATE_WORKSPACES: &[&str] =
    &["bench/Cargo.toml", "bench/parser/Cargo.toml", "fuzz/Cargo.toml"];
/// Seconds per fuzz target in the short run; a full run has 600.
const FUZZ_SECONDS: u64 = 10;

/// Runs every step; a failed step does not stop the run.
///
/// # Errors
///
/// A prerequisite is missing, or a step failed.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    if let Some(argument) = arguments.first() {
        return Err(format!("`test` takes no `{argument}`"));
    }
    prerequisites::check()?;
    let providing = thread::spawn(|| {
        install_servers()?;
        browser::install()?;
        conformance_suite::install()
    });
    let fetching = thread::spawn(|| CargoTool::NEXTEST.install());
    let mut steps = Steps::default();
    steps.run("format", check_format);
    steps.run("tidy", || tidy::run(&[]));
    steps.run("requirements", || requirements::run(&[]));
    steps.run("dependencies", dependencies::check_packages);
    match dependencies::advisories_problem() {
        Some(reason) => steps.skip("advisories", &reason),
        None => drop(steps.run("advisories", dependencies::check_advisories)),
    }
    steps.run("lint", || {
        let lint = "clippy --locked --workspace --all-targets --features xtask/soak -- -D warnings";
        Program::cargo(lint).run()
    });
    steps.run("lint of the small supervisor", || {
        Program::cargo(LINT_SUPERVISOR_ARGS).env("RUSTFLAGS", "--cfg innkeeper_freestanding").run()
    });
    steps.run("benchmarks compile", || Program::cargo(CHECK_BENCHMARKS_ARGS).run());
    steps.run("documentation", || {
        let doc = "doc --locked --workspace --no-deps";
        Program::cargo(doc).env("RUSTDOCFLAGS", "-D warnings").run()
    });
    let built = steps.run("build", || Program::cargo(BUILD_ARGS).run());
    steps.run("servers", || join_task(providing));
    if built {
        steps.run("local model", local_model::install);
    }
    if built && steps.run("test runner", || join_task(fetching).map(drop)) {
        steps.run("tests", || CargoTool::NEXTEST.install()?.args(NEXTEST_ARGS).run());
        match local_model::problem() {
            Some(reason) => steps.skip("tests of the local model", &reason),
            None => drop(steps.run("tests of the local model", local_model::run_tests)),
        }
        match browser::problem() {
            Some(reason) => steps.skip("console in a browser", &reason),
            None => drop(steps.run("console in a browser", browser::run_tests)),
        }
        match python::problem() {
            Some(reason) => steps.skip("Python", &reason),
            None => drop(steps.run("Python", || python::run_tests(&[]))),
        }
        steps.run("doctests", || Program::cargo(DOCTEST_ARGS).run());
        steps.run("chart", chart::check);
        steps.run("conformance", || conformance::run(&[]));
        steps.run("tool calls", || toolcalls::run(&[]));
        steps.run("providers", || providers::run(&[]));
        steps.run("trajectories", || trajectories::run(&["--tenth"]));
        steps.run("soak", soak::run_short);
        steps.run("fuzz", || fuzz::run_short(FUZZ_SECONDS));
    }
    steps.finish()
}

/// Installs the published servers and the local model, for tests that a developer starts.
///
/// # Errors
///
/// A prerequisite is missing, or an installation failed.
pub(crate) fn install_test_servers(arguments: &[&str]) -> TaskResult {
    if let Some(argument) = arguments.first() {
        return Err(format!("`install` takes no `{argument}`"));
    }
    install_servers()?;
    browser::install()?;
    Program::cargo("build --locked --package innkeeper-cli").run()?;
    local_model::install()
}

fn join_task<T>(work: thread::JoinHandle<TaskResult<T>>) -> TaskResult<T> {
    work.join().unwrap_or_else(|_| Err("a thread of this task panicked".to_owned()))
}

fn check_format() -> TaskResult {
    Program::cargo("fmt --all --check").run()?;
    for manifest in
        SEPARATE_WORKSPACES.iter().filter(|manifest| repository_root().join(manifest).exists())
    {
        Program::cargo("fmt --check --manifest-path").arg(manifest).run()?;
    }
    Ok(())
}
