//! `conformance`: runs the official MCP conformance suite against the host.

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
    EXTENSION_SCENARIOS.iter().try_for_each(|scenario| run_extension(scenario))
}

/// Runs one scenario of an extension. No revision scores the scenario, but it must pass.
fn run_extension(scenario: &str) -> TaskResult {
    let name = scenario.replace('/', "-");
    let log = repository_root().join(format!("target/conformance-{name}.log"));
    drop(std::fs::remove_file(&log));
    let results = repository_root().join("target/conformance").join(&name);
    let suite =
        conformance_suite::suite_program().args("client --scenario").arg(scenario).arg("--command");
    suite.path_arg(&client_program()).arg("-o").path_arg(&results).run_with_log(&log)?;
    output::print_line(format_args!("client, extension {scenario}: passed"));
    Ok(())
}

/// Runs one revision. The suite reports failures of unscored scenarios; these do not fail the task.
fn run_revision(revision: &str) -> TaskResult {
    let results = repository_root().join("target/conformance").join(revision);
    if results.exists() {
        let problem = |error| format!("`{}`: {error}", relative_path(&results));
        std::fs::remove_dir_all(&results).map_err(problem)?;
    }
    // The suite splits the command at spaces.
    let client = client_program();
    if client.to_string_lossy().contains(' ') {
        return Err("the suite cannot start a program with a space in its path".to_owned());
    }
    let log = repository_root().join(format!("target/conformance-{revision}.log"));
    drop(std::fs::remove_file(&log));
    let suite = conformance_suite::suite_program()
        .args("client --requirements")
        .arg(revision)
        .arg("--command");
    suite.path_arg(&client).arg("-o").path_arg(&results).run_with_log(&log)?;
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    let passed = said.lines().filter(|line| line.trim_start().starts_with('✓')).count();
    let failed: Vec<&str> =
        said.lines().filter_map(|line| line.trim_start().strip_prefix("✗ ")).collect();
    let failed = if failed.is_empty() { "none".to_owned() } else { failed.join(", ") };
    output::print_line(format_args!(
        "client, {revision}: {passed} passed; failed without score: {failed}"
    ));
    Ok(())
}

fn client_program() -> PathBuf {
    repository_root().join("target/debug/innkeeper-conformance")
}
