//! Two real MCP servers inside the program: files below a folder, and notes in a file.

mod serve;
mod service;
mod session;

mod files;
mod notes;

use std::io;
use std::path::Path;

pub(crate) use files::Files;
pub(crate) use notes::Notes;

use crate::args::ServerKind;
use crate::exit::Failure;

/// Serves over stdin and stdout until stdin ends.
///
/// # Errors
///
/// The folder or file cannot be used, or the streams break.
pub(crate) fn run(kind: ServerKind, place: &Path) -> Result<(), Failure> {
    let shown = place.display();
    let (input, output) = (io::stdin().lock(), io::stdout().lock());
    match kind {
        ServerKind::Files => {
            let files = Files::open(place).map_err(|error| {
                Failure::usage(format!("cannot serve `{shown}`")).because(error)
            })?;
            serve::run(files, input, output)?;
        }
        ServerKind::Notes => {
            let notes = Notes::open(place).map_err(|error| {
                Failure::usage(format!("cannot keep notes in `{shown}`")).because(error)
            })?;
            serve::run(notes, input, output)?;
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod direct {
    //! A built-in server called in this process, for tests that need one to answer.

    use std::path::Path;

    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::service::Service;
    use super::session::Session;
    use super::{Files, Notes};

    /// A session behind one call.
    pub(crate) struct Direct(Box<dyn FnMut(&Value) -> Value>);

    impl Direct {
        pub(crate) fn files(folder: &Path) -> Self {
            Self::of(Files::open(folder).unwrap())
        }

        pub(crate) fn notes(file: &Path) -> Self {
            Self::of(Notes::open(file).unwrap())
        }

        fn of(service: impl Service + 'static) -> Self {
            let mut session = Session::new(service);
            let hello = to_raw_value(&json!({ "protocolVersion": "2025-11-25" })).unwrap();
            session.answer("initialize", Some(&hello)).unwrap();
            Self(Box::new(move |params| {
                session.answer("tools/call", Some(&to_raw_value(params).unwrap())).unwrap()
            }))
        }

        /// The result object of a tool call.
        pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
            (self.0)(&Value::from_iter([("name", tool.into()), ("arguments", arguments)]))
        }
    }
}
