//! `conformance`: the official suite drives our host as a client, in every revision it scores.

use std::path::PathBuf;

use crate::program::{Program, relative, root};
use crate::test::{BUILD, suite};
use crate::{Chore, say};

/// The revisions with a list of scored scenarios of their own.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// The scenarios of extensions that the host has. Those of DPoP (`auth/dpop`, `auth/dpop-nonce`),
/// of workload identities (`auth/wif-jwt-bearer`) and of skills (`sep-2640-*`) it has not.
const EXTENSIONS: [&str; 3] = [
    "auth/client-credentials-jwt",
    "auth/client-credentials-basic",
    "auth/enterprise-managed-authorization",
];

/// Runs the scenarios of these revisions, of both unless told otherwise.
///
/// # Errors
///
/// The suite cannot be put in place, or a scored scenario failed.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    if let Some(odd) = arguments.iter().find(|argument| !REVISIONS.contains(argument)) {
        return Err(format!("`{odd}` is none of {}", REVISIONS.join(", ")));
    }
    // With the words that the tests are built with, so that nothing is built twice.
    Program::cargo(BUILD).run()?;
    suite::provide()?;
    let chosen = if arguments.is_empty() { &REVISIONS[..] } else { arguments };
    for revision in chosen {
        leg(revision)?;
    }
    EXTENSIONS.iter().try_for_each(|scenario| extension(scenario))
}

/// One scenario of an extension, which no revision scores: it has to pass all the same.
fn extension(scenario: &str) -> Chore {
    let name = scenario.replace('/', "-");
    let log = root().join(format!("target/conformance-{name}.log"));
    drop(std::fs::remove_file(&log));
    let results = root().join("target/conformance").join(&name);
    let suite = suite::program().line("client --scenario").arg(scenario).arg("--command");
    suite.path(&client()).arg("-o").path(&results).run_into(&log)?;
    say::line(format_args!("client, extension {scenario}: passed"));
    Ok(())
}

/// One revision. Scenarios that are run and not scored are reported by the suite and fail nothing.
fn leg(revision: &str) -> Chore {
    let results = root().join("target/conformance").join(revision);
    if results.exists() {
        let problem = |error| format!("`{}`: {error}", relative(&results));
        std::fs::remove_dir_all(&results).map_err(problem)?;
    }
    // The suite splits the command at spaces.
    let client = client();
    if client.to_string_lossy().contains(' ') {
        return Err("the suite cannot start a program whose path has a space in it".to_owned());
    }
    let log = root().join(format!("target/conformance-{revision}.log"));
    drop(std::fs::remove_file(&log));
    let suite = suite::program().line("client --requirements").arg(revision).arg("--command");
    suite.path(&client).arg("-o").path(&results).run_into(&log)?;
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    let passed = said.lines().filter(|line| line.trim_start().starts_with('✓')).count();
    let failed: Vec<&str> =
        said.lines().filter_map(|line| line.trim_start().strip_prefix("✗ ")).collect();
    let failed = if failed.is_empty() { "none".to_owned() } else { failed.join(", ") };
    say::line(format_args!("client, {revision}: {passed} passed, not scored and failed: {failed}"));
    Ok(())
}

fn client() -> PathBuf {
    root().join("target/debug/innkeeper-conformance")
}
