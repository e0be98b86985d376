//! `conformance`: runs the official MCP conformance suite against the host and the gateway.

mod server_legs;

use std::path::PathBuf;

use crate::program::{Program, relative_path, repository_root};
use crate::test::{BUILD_ARGS, conformance_suite};
use crate::{TaskResult, output};

/// The revisions with their own list of scored scenarios.
const SCORED_REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// The scenarios of the extensions that the host supports. The host does not support DPoP
/// (`auth/dpop`, `auth/dpop-nonce`), workload identities (`auth/wif-jwt-bearer`) or skills
/// (`sep-2640-*`).
const EXTENSION_SCENARIOS: [&str; 3] = [
    "auth/client-credentials-jwt",
    "auth/client-credentials-basic",
    "auth/enterprise-managed-authorization",
];

/// Runs the scenarios of the given revisions, by default of both.
///
/// # Errors
///
/// The suite cannot be installed, or a scored scenario failed.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    if let Some(odd) = arguments.iter().find(|argument| !SCORED_REVISIONS.contains(argument)) {
        return Err(format!("unknown revision `{odd}`; known: {}", SCORED_REVISIONS.join(", ")));
    }
    // The same arguments as for the tests avoid a second build.
    Program::cargo(BUILD_ARGS).run()?;
    conformance_suite::install()?;
    let chosen = if arguments.is_empty() { &SCORED_REVISIONS[..] } else { arguments };
    for revision in chosen {
        run_revision(revision)?;
    }
    server_legs::run(chosen)?;
    EXTENSION_SCENARIOS.iter().try_for_each(|scenario| run_extension(scenario))
}

/// Runs one scenario of an extension. No revision scores the scenario, but it must pass.
fn run_extension(scenario: &str) -> TaskResult {
    let name = scenario.replace('/', "-");
    let log = repository_root().join(format!("target/conformance-{name}.log"));
    let _ = std::fs::remove_file(&log);
    let results = repository_root().join("target/conformance").join(&name);
    let suite =
        conformance_suite::suite_program().args("client --scenario").arg(scenario).arg("--command");
    suite.path_arg(&client_program()).arg("-o").path_arg(&results).run_with_log(&log)?;
    output::print_line(format_args!("client, extension {scenario}: passed"));
    Ok(())
}

/// Runs one revision against the host as the client. The suite reports failures of unscored
/// scenarios; these do not fail the task.
fn run_revision(revision: &str) -> TaskResult {
    // The suite splits the command at spaces.
    let client = client_program();
    if client.to_string_lossy().contains(' ') {
        return Err("the suite cannot start a program with a space in its path".to_owned());
    }
    let suite = conformance_suite::suite_program().args("client --command").path_arg(&client);
    let summary = run_scored(suite, revision, revision)?;
    output::print_line(format_args!("client, {revision}: {summary}"));
    Ok(())
}

/// Runs the scored and the unscored scenarios of a revision. Returns the number of passed scenarios
/// and the names of the failed unscored scenarios.
fn run_scored(suite: Program, revision: &str, name: &str) -> TaskResult<String> {
    let results = repository_root().join("target/conformance").join(name);
    if results.exists() {
        std::fs::remove_dir_all(&results)
            .map_err(|error| format!("`{}`: {error}", relative_path(&results)))?;
    }
    let log = log_path(name);
    let _ = std::fs::remove_file(&log);
    let suite = suite.arg("--requirements").arg(revision).arg("-o").path_arg(&results);
    let ended = suite.run_with_log(&log);
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let failed = failed_scenarios(&text);
    match ended {
        Ok(()) => Ok(summary(&text)),
        Err(problem) if failed.is_empty() => Err(problem),
        Err(_) => Err(format!("{}; see `{}`", failed.join(", "), relative_path(&log))),
    }
}

fn log_path(name: &str) -> PathBuf {
    repository_root().join(format!("target/conformance-{name}.log"))
}

/// Returns the scenarios with a mark in the summary at the end of a log. After the summary, the suite
/// repeats the unscored scenarios with an indentation.
fn marked_scenarios<'a>(log: &'a str, mark: &str) -> Vec<&'a str> {
    let summary = log.rsplit_once("SUMMARY ===").map_or("", |(_, summary)| summary);
    summary.lines().filter_map(|line| line.strip_prefix(mark)).collect()
}

fn failed_scenarios(log: &str) -> Vec<&str> {
    marked_scenarios(log, "✗ ")
}

/// Returns how many scenarios of a log passed, and which failed.
fn summary(log: &str) -> String {
    let (passed, failed) = (marked_scenarios(log, "✓ ").len(), failed_scenarios(log));
    let failed = if failed.is_empty() { "none".to_owned() } else { failed.join(", ") };
    format!("{passed} passed; failed without score: {failed}")
}

fn client_program() -> PathBuf {
    repository_root().join("target/debug/innkeeper-conformance")
}
