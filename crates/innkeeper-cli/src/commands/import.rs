//! `import`: prints a converted `mcp.json` to stdout, notes and warnings to stderr.

use crate::cli::ImportArgs;
use crate::error_chain::error_chain;
use crate::exit::CliError;
use crate::import::{BaseDirectories, ImportError, ImportResult, import as read};
use crate::output::{Output, Style};

/// Reads the files of other hosts and prints the converted configuration.
pub(crate) fn import(
    args: &ImportArgs,
    directories: &BaseDirectories,
    output: &mut Output,
) -> Result<(), CliError> {
    let imported = read(args.source.as_ref(), directories)?;
    for note in &imported.notes {
        output.labelled_status(Style::Note, "note", &note.to_string())?;
    }
    if imported.is_empty() {
        return Err(nothing_imported(imported));
    }
    for error in &imported.errors {
        let text = format!("{}; this file is not imported", describe(error));
        output.labelled_status(Style::Note, "warning", &text)?;
    }
    if output.is_json() {
        output.print_json(&imported.document())?;
    } else {
        output.print_indented_json(&imported.document())?;
    }
    Ok(())
}

/// Returns the error for files without a server that can be imported.
fn nothing_imported(mut imported: ImportResult) -> CliError {
    match imported.errors.len() {
        0 => {
            let files: Vec<String> =
                imported.files.iter().map(|file| format!("`{file}`")).collect();
            CliError::usage(format!("no server to import in {}", files.join(", ")))
        }
        1 => CliError::from(imported.errors.remove(0)),
        _ => imported
            .errors
            .iter()
            .fold(CliError::usage("no file can be imported"), |failure, error| {
                failure.with_detail(describe(error))
            }),
    }
}

/// Returns the message of an error with the messages of its sources.
fn describe(error: &ImportError) -> String {
    let messages: Vec<String> = error_chain(error).map(ToString::to_string).collect();
    messages.join(": ")
}
