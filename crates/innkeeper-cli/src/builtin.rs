//! The built-in MCP servers: files in a directory, and notes in a file.

mod serve;
mod service;
mod session;

mod files;
mod notes;

use std::io;
use std::path::Path;

pub(crate) use files::FilesService;
pub(crate) use notes::NotesService;

use crate::cli::BuiltinServerKind;
use crate::exit::CliError;

/// Serves over stdin and stdout until stdin ends.
///
/// # Errors
///
/// The directory or file is unusable, or stdin or stdout fails.
pub(crate) fn run(kind: BuiltinServerKind, path: &Path) -> Result<(), CliError> {
    let display_path = path.display();
    let input = io::stdin().lock();
    let output = io::stdout().lock();
    match kind {
        BuiltinServerKind::Files => {
            let files = FilesService::open(path).map_err(|error| {
                CliError::usage(format!("cannot serve `{display_path}`")).with_source(error)
            })?;
            serve::run(files, input, output)?;
        }
        BuiltinServerKind::Notes => {
            let notes = NotesService::open(path).map_err(|error| {
                CliError::usage(format!("cannot use the notes file `{display_path}`"))
                    .with_source(error)
            })?;
            serve::run(notes, input, output)?;
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod in_process {
    //! A built-in server in the test process.

    use std::path::Path;

    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::service::Service;
    use super::session::Session;
    use super::{FilesService, NotesService};

    /// A server session called through a function.
    pub(crate) struct InProcessServer(Box<dyn FnMut(&Value) -> Value>);

    impl InProcessServer {
        pub(crate) fn files(dir: &Path) -> Self {
            Self::new(FilesService::open(dir).unwrap())
        }

        pub(crate) fn notes(file: &Path) -> Self {
            Self::new(NotesService::open(file).unwrap())
        }

        fn new(service: impl Service + 'static) -> Self {
            let mut session = Session::new(service);
            let hello = to_raw_value(&json!({ "protocolVersion": "2025-11-25" })).unwrap();
            session.handle_request("initialize", Some(&hello)).unwrap();
            Self(Box::new(move |params| {
                session.handle_request("tools/call", Some(&to_raw_value(params).unwrap())).unwrap()
            }))
        }

        /// Calls a tool and returns its result object.
        pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
            (self.0)(&Value::from_iter([("name", tool.into()), ("arguments", arguments)]))
        }
    }
}
