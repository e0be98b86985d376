//! Whether a recording may be written.

use std::fs;
use std::path::Path;

use innkeeper_host::Environment;

use crate::exit::CliError;

/// Refuses to record under continuous integration, because a golden that records itself tests nothing,
/// and to a file that cannot be written. `command` is what the user typed.
///
/// # Errors
///
/// Both are errors of usage.
pub(in crate::commands) fn check_recordable(
    file: &Path,
    command: &str,
    environment: &Environment,
) -> Result<(), CliError> {
    if is_continuous_integration(environment) {
        return Err(CliError::usage(format!("`{command}` is refused where `CI` is set"))
            .with_hint("record on your own machine and commit the file, or unset `CI`"));
    }
    check_replaceable(file)?;
    check_writable(file)
}

/// Refuses to replace what is no regular file: a golden is read before it is recorded again.
fn check_replaceable(file: &Path) -> Result<(), CliError> {
    match fs::metadata(file) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            let message = format!("`{}` is not a regular file", file.display());
            Err(CliError::usage(message).with_hint("name another file"))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Refuses a file that cannot be written, before a model is paid for.
pub(in crate::commands) fn check_writable(file: &Path) -> Result<(), CliError> {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let cannot = || CliError::usage(format!("cannot write `{}`", file.display()));
    if file.is_dir() {
        return Err(cannot().with_hint("name a file, not a directory"));
    }
    let probe = tempfile::Builder::new().prefix(".innkeeper-").tempfile_in(directory);
    probe.map(drop).map_err(|error| {
        cannot().with_source(error).with_hint("create the directory, or name another one")
    })
}

/// Returns whether the command runs under continuous integration.
pub(in crate::commands) fn is_continuous_integration(environment: &Environment) -> bool {
    environment.get("CI").is_some_and(|value| !matches!(value, "" | "0" | "false"))
}
