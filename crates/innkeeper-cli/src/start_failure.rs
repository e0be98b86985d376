//! The error of a host that did not start, as messages for the user.

use innkeeper_host::StartError;

use crate::configuration::config_error;
use crate::exit::CliError;

/// Converts a start error to an error with the exit code of its class.
pub(crate) fn start_error(error: &StartError) -> CliError {
    match error {
        StartError::Config(problems) => config_error(problems),
        StartError::Servers(failures) => {
            let names: Vec<String> =
                failures.iter().map(|failure| format!("`{}`", failure.server)).collect();
            let mut failure = CliError::failure(format!(
                "{} did not start; all servers were stopped",
                names.join(", ")
            ));
            for server in failures {
                failure = failure.with_detail(server.to_string());
                for line in server.stderr.lines() {
                    failure = failure.with_detail(format!("    {}: {line}", server.server));
                }
            }
            for server in failures.iter().filter(|server| server.needs_user_sign_in()) {
                failure = failure
                    .with_hint(format!("run `innkeeper login {}` to sign in", server.server));
            }
            failure
                .with_hint("set `required: false` for a failed server to start the other servers")
        }
    }
}
