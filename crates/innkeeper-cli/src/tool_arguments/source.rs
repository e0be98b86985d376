//! Reads the arguments that are not on the command line: from files and from stdin.

use std::fs::File;
use std::io::{self, Read};

use serde_json::value::RawValue;

use super::ArgumentMap;
use super::duplicate_keys::find_duplicate_key;
use super::typed::{TypedArgument, TypedValue};
use crate::input_file;

/// Maximum number of bytes of a file or of stdin; equals the limit of a message to a server.
pub(super) const MAX_ARGUMENTS_BYTES: u64 = 16 << 20;

/// All arguments of a command, before the conversion to the types of a schema.
#[derive(Debug, Default)]
pub(crate) struct ArgumentInput {
    /// The members of the JSON object.
    pub(super) object: ArgumentMap,
    /// The values of single keys, in their order.
    pub(super) pairs: Vec<(String, ArgumentValue)>,
}

#[derive(Clone, Debug)]
pub(super) enum ArgumentValue {
    /// Text of the command line.
    Text(String),
    /// The text of a file.
    FileText(String),
    /// A JSON value, independent of the schema.
    Json(Box<RawValue>),
}

/// Why arguments cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentSourceError {
    #[error("cannot read the arguments from `{origin}`")]
    Unreadable { origin: String, source: io::Error },
    #[error("the arguments from `{origin}` are longer than {} MiB", MAX_ARGUMENTS_BYTES >> 20)]
    TooLong { origin: String },
    #[error("the arguments are not a JSON object")]
    NotAnObject { source: serde_json::Error },
    #[error("the arguments have an object with the duplicate key `{key}`")]
    DuplicateKey { key: String },
    #[error("the arguments are given as two JSON objects")]
    SeveralObjects,
    #[error("stdin is the source of two arguments")]
    RepeatedStdin,
}

impl ArgumentInput {
    /// Reads the arguments of the command line and `--args`: a JSON object, `@FILE` or `-`.
    pub(crate) fn read(
        arguments: &[TypedArgument],
        json_args: Option<&str>,
        stdin: impl Read,
    ) -> Result<Self, ArgumentSourceError> {
        let mut reader = SourceReader { stdin: Some(stdin) };
        let mut input = Self::default();
        let mut object = None;
        if let Some(typed) = json_args {
            object = Some(match typed.strip_prefix('@') {
                Some(path) => reader.read_file(path)?,
                None if typed == "-" => reader.read_stdin()?,
                None => typed.to_owned(),
            });
        }
        for argument in arguments {
            let text = match argument {
                TypedArgument::Pair { key, value } => {
                    let value = match value {
                        TypedValue::Text(text) => ArgumentValue::Text(text.clone()),
                        TypedValue::Json(json) => ArgumentValue::Json(json.clone()),
                        TypedValue::File(path) if path == "-" => {
                            ArgumentValue::FileText(reader.read_stdin()?)
                        }
                        TypedValue::File(path) => ArgumentValue::FileText(reader.read_file(path)?),
                    };
                    input.pairs.push((key.clone(), value));
                    continue;
                }
                TypedArgument::Object(text) => text.clone(),
                TypedArgument::Stdin => reader.read_stdin()?,
            };
            if object.replace(text).is_some() {
                return Err(ArgumentSourceError::SeveralObjects);
            }
        }
        if let Some(text) = object {
            input.object = parse_object(&text)?;
        }
        Ok(input)
    }
}

fn parse_object(text: &str) -> Result<ArgumentMap, ArgumentSourceError> {
    let arguments =
        serde_json::from_str(text).map_err(|source| ArgumentSourceError::NotAnObject { source })?;
    match find_duplicate_key(text) {
        Some(key) => Err(ArgumentSourceError::DuplicateKey { key }),
        None => Ok(arguments),
    }
}

/// Reads files, and stdin once.
struct SourceReader<R> {
    stdin: Option<R>,
}

impl<R: Read> SourceReader<R> {
    fn read_stdin(&mut self) -> Result<String, ArgumentSourceError> {
        let stdin = self.stdin.take().ok_or(ArgumentSourceError::RepeatedStdin)?;
        read_text("stdin", stdin)
    }

    fn read_file(&self, path: &str) -> Result<String, ArgumentSourceError> {
        read_text(
            path,
            File::open(path).map_err(|source| ArgumentSourceError::Unreadable {
                origin: path.to_owned(),
                source,
            })?,
        )
    }
}

fn read_text(from: &str, source: impl Read) -> Result<String, ArgumentSourceError> {
    input_file::read_from(source, MAX_ARGUMENTS_BYTES).map_err(|source| match source.kind() {
        io::ErrorKind::FileTooLarge => ArgumentSourceError::TooLong { origin: from.to_owned() },
        _ => ArgumentSourceError::Unreadable { origin: from.to_owned(), source },
    })
}
