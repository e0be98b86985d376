//! Runs the suite against `innkeeper serve` in front of a server of each era.

use std::time::Duration;

use serde_json::json;

use super::{conformance_suite, log_path, run_scored};
use crate::program::{Program, RunningProgram, relative_path, repository_root};
use crate::{TaskResult, output};

/// The eras of the server behind the gateway.
const ERAS: [&str; 2] = ["legacy", "modern"];

/// Time until the gateway has started its server and serves.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs the scenarios of the given revisions, in front of a server of each era. A failed leg does
/// not stop the other legs.
///
/// # Errors
///
/// The gateway does not start, or a scored scenario failed.
pub(super) fn run(revisions: &[&str]) -> TaskResult {
    let mut problems = Vec::new();
    for era in ERAS {
        for revision in revisions {
            match run_leg(era, revision) {
                Ok(summary) => output::print_line(format_args!(
                    "server, {revision}, in front of a {era} server: {summary}"
                )),
                Err(problem) => {
                    problems.push(format!("{revision}, in front of a {era} server: {problem}"));
                }
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

fn run_leg(era: &str, revision: &str) -> TaskResult<String> {
    let (_gateway, url) = start_gateway(era)?;
    let suite = conformance_suite::suite_program().args("server --url").arg(url);
    run_scored(suite, revision, &format!("server-{revision}-{era}"))
}

/// Starts the gateway in front of a server of one era. Returns the URL of its endpoint.
fn start_gateway(era: &str) -> TaskResult<(RunningProgram, String)> {
    let programs = repository_root().join("target/debug");
    let server = programs.join("innkeeper-conformance-server");
    let config = json!({ "servers": { "suite": { "command": server, "args": ["--era", era] } } });
    let file = repository_root().join(format!("target/conformance-gateway-{era}.json"));
    std::fs::write(&file, config.to_string())
        .map_err(|error| format!("`{}`: {error}", relative_path(&file)))?;
    let gateway = Program::new(programs.join("innkeeper"))
        .args("serve --listen 127.0.0.1:0 --names flat --config")
        .path_arg(&file);
    let mut gateway = gateway.start(&log_path(&format!("gateway-{era}")))?;
    let address = gateway.wait_for(" on http://", START_TIMEOUT)?;
    Ok((gateway, format!("http://{address}")))
}
