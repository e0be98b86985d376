//! `import`: prints a converted `mcp.json` to stdout and notes to stderr.

use crate::cli::ImportArgs;
use crate::exit::CliError;
use crate::import::{BaseDirectories, ImportError, import as read};
use crate::output::{Output, Style};

/// Reads the files of other hosts and prints the converted configuration.
pub(crate) fn import(
    args: &ImportArgs,
    directories: &BaseDirectories,
    output: &mut Output,
) -> Result<(), CliError> {
    let imported =
        read(args.host, directories).map_err(|error| import_error(error, args.host.is_none()))?;
    for note in &imported.notes {
        output.labelled_status(Style::Note, "note", &note.to_string())?;
    }
    if output.is_json() {
        output.print_json(&imported.document())?;
    } else {
        output.print_data(
            &serde_json::to_string_pretty(&imported.document()).map_err(std::io::Error::from)?,
        )?;
    }
    Ok(())
}

/// Converts the error; if all hosts were read, a hint says how to skip a broken file.
fn import_error(error: ImportError, all: bool) -> CliError {
    let is_found = !matches!(error, ImportError::NotFound { .. });
    let failure = CliError::from(error);
    if all && is_found {
        failure.with_hint("run `innkeeper import HOST` to read the files of one host only")
    } else {
        failure
    }
}
