//! `import`: an `mcp.json` on stdout, and on stderr what it lacks.

use crate::args::ImportArgs;
use crate::exit::Failure;
use crate::import::{ImportError, Places, import as read};
use crate::output::{Output, Tone};

/// Reads the other hosts' files and prints the result.
pub(crate) fn import(
    args: &ImportArgs,
    places: &Places,
    output: &mut Output,
) -> Result<(), Failure> {
    let imported = read(args.host, places).map_err(|error| words(error, args.host.is_none()))?;
    for note in &imported.notes {
        output.label(Tone::Note, "note", &note.to_string())?;
    }
    if output.is_json() {
        output.value(&imported.document())?;
    } else {
        output.data(
            &serde_json::to_string_pretty(&imported.document()).map_err(std::io::Error::from)?,
        )?;
    }
    Ok(())
}

/// The error in words; where all hosts were read, a broken file need not stop the others.
fn words(error: ImportError, all: bool) -> Failure {
    let found = !matches!(error, ImportError::Nothing { .. });
    let failure = Failure::from(error);
    if all && found { failure.hint("name one host to read only its files") } else { failure }
}
