//! The ladder from what a model said to a call that may be executed.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;

use crate::coerce::{coerce, typed};
use crate::json::Json;
use crate::parse::{DEPTH, End, ParseError, encoded, lenient};
use crate::repair::{Change, Repair, note, quoted};
use crate::resolve::{resolve, suggest};
use crate::tool::{Tool, Tools};

/// A call of an offered tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The name of the tool, as it was offered.
    pub name: String,
    /// The arguments: always an object. They may still not fit the tool's schema, see
    /// [`Toolbox::violations`](crate::Toolbox::violations).
    pub arguments: Json,
    /// What was changed to make this of what the model said, in the order it was changed.
    pub repairs: Vec<Repair>,
}

/// The arguments of a call as a format has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arguments<'a> {
    /// Text that should be a JSON object.
    Text(&'a str),
    /// A value that was read already.
    Value(Json),
    /// Names with raw text, as XML-like formats write them.
    Raw(Vec<(String, String)>),
}

/// What a model said that is no call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The name of the tool, as it was said, or as it was offered if it could be found.
    pub name: String,
    /// Why.
    pub reason: Reason,
    /// Names of offered tools that may be meant where the name is unknown, three at most.
    pub suggestions: Vec<String>,
}

/// Why something is no call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// No offered tool has the name, or several are equally close.
    UnknownTool,
    /// The generation was cut inside the call.
    Cut,
    /// The arguments cannot be read.
    Unreadable(ParseError),
    /// The arguments are no object but this.
    NotAnObject(&'static str),
    /// An argument was given twice.
    DuplicateArgument(String),
    /// More than [`DEPTH`] arrays and objects are inside one another.
    TooDeep,
    /// It is longer than this many bytes.
    TooLong(usize),
    /// It is not written as calls are, in these words.
    Form(String),
}

/// Makes a call of what a model said, one step after the other: the name, the text, the types.
///
/// What was cut ([`End::Cut`]) is never a call, whatever it looks like. No arguments at all (blank
/// text, an empty string, `null`) are an empty object, unless the model stopped before it wrote
/// any. Whether the arguments fit the tool's schema is not decided here.
///
/// # Errors
///
/// Why it is no call.
pub fn ladder(
    tools: &Tools,
    said: &str,
    arguments: Arguments<'_>,
    end: End,
) -> Result<Call, Rejected> {
    let Some(found) = resolve(tools, said) else {
        let suggestions = suggest(tools, said);
        return Err(Rejected { name: said.to_owned(), reason: Reason::UnknownTool, suggestions });
    };
    let tool = found.tool;
    let mut repairs: Vec<Repair> = found.repair.into_iter().collect();
    let object = read(tool, arguments, end, &mut repairs).map_err(|reason| Rejected {
        name: tool.name.clone(),
        reason,
        suggestions: Vec::new(),
    })?;
    let arguments = coerce(object, &tool.input_schema, &mut repairs);
    Ok(Call { name: tool.name.clone(), arguments, repairs })
}

/// The arguments as an object.
fn read(
    tool: &Tool,
    arguments: Arguments<'_>,
    end: End,
    repairs: &mut Vec<Repair>,
) -> Result<Json, Reason> {
    if end == End::Cut {
        return Err(Reason::Cut);
    }
    match arguments {
        Arguments::Text(text) if text.trim().is_empty() && end == End::Complete => {
            Ok(empty(repairs))
        }
        Arguments::Text(text) => {
            object(lenient(text, end, repairs).map_err(Reason::Unreadable)?, repairs)
        }
        Arguments::Value(json) if json.is_deeper(DEPTH) => Err(Reason::TooDeep),
        Arguments::Value(json) => object(json, repairs),
        Arguments::Raw(pairs) => raw(tool, pairs),
    }
}

/// `json` as an object, also where it is one inside a string, or nothing.
fn object(json: Json, repairs: &mut Vec<Repair>) -> Result<Json, Reason> {
    match json {
        Json::Object(_) => Ok(json),
        Json::Null => Ok(empty(repairs)),
        Json::String(text) if text.trim().is_empty() => Ok(empty(repairs)),
        Json::String(text) => {
            let mut made = Vec::new();
            let inside = encoded(&text, DEPTH, "", &mut made)
                .filter(|json| matches!(json, Json::Object(_)))
                .ok_or(Reason::NotAnObject("a string"))?;
            let whole = Repair::Value { pointer: String::new(), change: Change::StringToJson };
            note(repairs, whole);
            made.into_iter().for_each(|repair| note(repairs, repair));
            Ok(inside)
        }
        Json::Bool(_) => Err(Reason::NotAnObject("a boolean")),
        Json::Number(_) => Err(Reason::NotAnObject("a number")),
        Json::Array(_) => Err(Reason::NotAnObject("an array")),
    }
}

fn empty(repairs: &mut Vec<Repair>) -> Json {
    note(repairs, Repair::Value { pointer: String::new(), change: Change::Empty });
    Json::Object(Vec::new())
}

fn raw(tool: &Tool, pairs: Vec<(String, String)>) -> Result<Json, Reason> {
    let mut seen = HashSet::new();
    if let Some((twice, _)) = pairs.iter().find(|(key, _)| !seen.insert(key.as_str())) {
        return Err(Reason::DuplicateArgument(twice.clone()));
    }
    let root = &tool.input_schema;
    let members = pairs.into_iter().map(|(key, text)| {
        let value = typed(&text, tool.property(&key), root);
        (key, value)
    });
    Ok(Json::Object(members.collect()))
}

impl std::error::Error for Rejected {}

/// Why it is no call, in words for the model that said it.
impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = quoted(&self.name);
        match &self.reason {
            Reason::UnknownTool => {
                write!(f, "there is no tool {name}")?;
                let meant: Vec<String> = self.suggestions.iter().map(|name| quoted(name)).collect();
                match meant.split_last() {
                    None => Ok(()),
                    Some((only, [])) => write!(f, "; did you mean {only}?"),
                    Some((last, most)) => {
                        write!(f, "; did you mean {} or {last}?", most.join(", "))
                    }
                }
            }
            Reason::TooLong(limit) => write!(f, "the call is longer than {limit} bytes"),
            Reason::Form(words) => f.write_str(words),
            Reason::Cut => write!(f, "the call of {name} was cut off before it was complete"),
            Reason::Unreadable(error) => {
                write!(f, "the arguments of {name} are not valid JSON: {error}")
            }
            Reason::NotAnObject(found) => {
                write!(f, "the arguments of {name} must be a JSON object, found {found}")
            }
            Reason::DuplicateArgument(argument) => {
                write!(f, "the argument {} of {name} is given twice", quoted(argument))
            }
            Reason::TooDeep => {
                write!(
                    f,
                    "the arguments of {name} have more than {DEPTH} values inside one another"
                )
            }
        }
    }
}
