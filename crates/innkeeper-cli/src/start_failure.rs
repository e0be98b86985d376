//! The error of a host that did not start, as messages for the user.

use innkeeper_host::StartError;
use innkeeper_host::error::ServerFailure;

use crate::configuration::config_error;
use crate::exit::CliError;

/// Converts a start error of a host with this number of servers to an error with the exit code of
/// its class. The message of one failed server contains the server's own words.
pub(crate) fn start_error(error: &StartError, server_count: usize) -> CliError {
    let failures = match error {
        StartError::Config(problems) => return config_error(problems),
        StartError::Servers(failures) => failures,
    };
    let are_others_stopped = server_count > failures.len();
    let mut report = match failures.as_slice() {
        [failure] => single_failure(failure),
        _ => multiple_failures(failures),
    };
    if are_others_stopped {
        report = report.with_detail("all servers were stopped");
    }
    report = failures.iter().fold(report, with_stderr);
    for failure in failures {
        report = failure.hint().into_iter().fold(report, CliError::with_hint);
        if failure.needs_user_sign_in() {
            report = report.with_hint(sign_in_hint(&failure.server));
        }
    }
    if are_others_stopped {
        report = report
            .with_hint("set `required: false` for a failed server to start the other servers");
    }
    report
}

/// Returns the next step for a server that requires a sign-in.
pub(crate) fn sign_in_hint(server: &str) -> String {
    format!("run `innkeeper login {server}` to sign in")
}

fn single_failure(failure: &ServerFailure) -> CliError {
    let ServerFailure { server, reason, .. } = failure;
    let attempts = attempt_count(failure);
    match failure.stderr_line() {
        Some(line) => CliError::failure(format!("server `{server}` did not start: {line}"))
            .with_detail(format!("{reason}{attempts}")),
        None => {
            let summary = failure.summary();
            CliError::failure(format!("server `{server}` did not start: {summary}{attempts}"))
        }
    }
}

fn multiple_failures(failures: &[ServerFailure]) -> CliError {
    let names: Vec<_> = failures.iter().map(|failure| format!("`{}`", failure.server)).collect();
    let report = CliError::failure(format!("servers did not start: {}", names.join(", ")));
    failures.iter().fold(report, |report, failure| {
        let summary = failure.summary();
        let attempts = attempt_count(failure);
        report.with_detail(format!("`{}`: {summary}{attempts}", failure.server))
    })
}

fn attempt_count(failure: &ServerFailure) -> String {
    match failure.attempts {
        0 | 1 => String::new(),
        attempts => format!(" ({attempts} attempts)"),
    }
}

/// Adds the lines of stderr, unless the message already contains the only line.
fn with_stderr(report: CliError, failure: &ServerFailure) -> CliError {
    if failure.stderr_line().is_some_and(|line| line == failure.stderr) {
        return report;
    }
    let lines = failure.stderr.lines().filter(|line| !line.trim().is_empty());
    lines.fold(report, |report, line| report.with_detail(format!("  {}: {line}", failure.server)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use innkeeper_host::ExitStatus;
    use innkeeper_host::error::{StartFailureReason, StartPhase};

    use super::*;
    use crate::output::capture;

    fn failure(server: &str, stderr: &str, attempts: u32) -> ServerFailure {
        ServerFailure {
            server: server.into(),
            phase: StartPhase::Handshake,
            reason: StartFailureReason::Exited(ExitStatus::Code(1)),
            stderr: stderr.to_owned(),
            attempts,
        }
    }

    fn report(failures: Vec<ServerFailure>, server_count: usize) -> String {
        let (mut output, _, err) = capture::captured_output(false, false);
        start_error(&StartError::Servers(failures), server_count).report(&mut output);
        err.text()
    }

    #[test]
    fn the_first_line_of_a_failed_start_is_the_words_of_the_server() {
        let stderr = "npm warn Unknown user config\n\
                      Error: BRAVE_API_KEY environment variable is required";
        insta::assert_snapshot!(report(vec![failure("brave", stderr, 1)], 1), @r"
        error: server `brave` did not start: Error: BRAVE_API_KEY environment variable is required
          process ended with exit code 1
            brave: npm warn Unknown user config
            brave: Error: BRAVE_API_KEY environment variable is required
          hint: set `BRAVE_API_KEY` in `env` of server `brave`
        ");
        insta::assert_snapshot!(report(vec![failure("db", "no database", 2)], 2), @r"
        error: server `db` did not start: no database
          process ended with exit code 1 (2 attempts)
          all servers were stopped
          hint: set `required: false` for a failed server to start the other servers
        ");
    }

    #[test]
    fn each_of_several_failed_servers_has_a_line_with_its_reason() {
        let slow = ServerFailure {
            phase: StartPhase::Install,
            reason: StartFailureReason::TimedOut(Duration::from_secs(300)),
            ..failure("slow", "Downloading big (300MiB)", 1)
        };
        insta::assert_snapshot!(report(vec![failure("db", "no database", 2), slow], 2), @r"
        error: servers did not start: `db`, `slow`
          `db`: no database (process ended with exit code 1) (2 attempts)
          `slow`: during installation: not ready within 300 s
            slow: Downloading big (300MiB)
        ");
    }
}
