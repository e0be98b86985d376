//! The editor of the user for long messages.

use std::io::Write as _;

use innkeeper_host::Environment;

use super::attachment::MAX_ATTACHED_BYTES;
use crate::exit::CliError;
use crate::input_file;

/// Opens a text in `$VISUAL`, `$EDITOR` or `vi`, and returns the text that the user saved. The editor
/// has the terminal until its end. A drop of the future kills the editor.
pub(crate) async fn edit(environment: &Environment, text: &str) -> Result<String, CliError> {
    let failure = |error| CliError::failure("cannot edit the message").with_source(error);
    let editor = environment.get("VISUAL").or_else(|| environment.get("EDITOR"));
    let words = shlex::split(editor.unwrap_or("vi")).unwrap_or_default();
    let Some((program, arguments)) = words.split_first() else {
        return Err(CliError::usage("`VISUAL` or `EDITOR` names no program"));
    };
    let file = tempfile::Builder::new().prefix("innkeeper-").suffix(".md").tempfile();
    let mut file = file.map_err(failure)?;
    file.write_all(text.as_bytes()).map_err(failure)?;
    #[expect(clippy::disallowed_methods, reason = "the editor of the user needs the terminal")]
    let mut editor = tokio::process::Command::new(program);
    let editor = editor.args(arguments).arg(file.path()).kill_on_drop(true);
    match editor.status().await {
        Ok(status) if status.success() => {
            let text = input_file::read(file.path(), MAX_ATTACHED_BYTES).map_err(failure)?;
            Ok(text.trim_end().to_owned())
        }
        Ok(status) => Err(CliError::failure(format!("`{program}` failed: {status}"))),
        Err(error) => {
            Err(CliError::failure(format!("cannot start `{program}`")).with_source(error))
        }
    }
}
