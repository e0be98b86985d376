//! Resolution of a raw call into a call that may be executed.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;

use memchr::memmem;

use crate::coerce::{coerce, coerce_text};
use crate::json::Json;
use crate::parse::{Completeness, MAX_DEPTH, ParseError, parse_embedded, parse_lenient};
use crate::repair::{CoercionKind, Repair, push_repair, quote_backticks};
use crate::resolve::{resolve, suggest};
use crate::tool::{Tool, Tools};

/// A call of an offered tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedCall {
    /// The name of the tool as offered.
    pub name: String,
    /// The arguments: always an object, which may still violate the tool's schema; see
    /// [`ToolValidator::violations`](crate::ToolValidator::violations).
    pub arguments: Json,
    /// The repairs of the model's text, in the order of their application.
    pub repairs: Vec<Repair>,
}

/// The arguments of a call in the form of the call format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawArguments<'a> {
    /// Text that should be a JSON object.
    Text(&'a str),
    /// A parsed value.
    Value(Json),
    /// Argument names with raw text, as in XML-like formats.
    TextPairs(Vec<(String, String)>),
}

/// Model text that looked like a call but is not a valid call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedCall {
    /// The name of the tool: as offered if the tool was found, otherwise as the model wrote it.
    pub name: String,
    /// The reason of the rejection.
    pub reason: RejectReason,
    /// Similar names of offered tools for an unknown name, three at most.
    pub suggestions: Vec<String>,
}

/// The reason why a call is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RejectReason {
    /// No offered tool has the name, or several tools are equally similar.
    UnknownTool,
    /// The generation was cut off inside the call.
    Truncated,
    /// The arguments are not valid JSON.
    InvalidJson(ParseError),
    /// The arguments are not an object. The string names the actual type.
    NotAnObject(&'static str),
    /// An argument occurs twice.
    DuplicateArgument(String),
    /// More than [`MAX_DEPTH`] arrays and objects are nested.
    TooDeep,
    /// The call is longer than this many bytes.
    TooLong(usize),
    /// The call violates its call format. The string describes the error.
    Malformed(String),
    /// A string argument contains the markup of another argument of the tool, which is missing: the
    /// model or its server has read both as one.
    SwallowedArgument {
        /// The argument with the string.
        argument: String,
        /// The argument that is missing.
        missing: String,
    },
}

/// Resolves a raw call in three steps: tool name, argument text, argument types.
///
/// A truncated call ([`Completeness::Truncated`]) is always rejected. Missing arguments (blank
/// text, an empty string, `null`) become an empty object, unless the model stopped before it wrote
/// any arguments. This function does not validate the arguments against the tool's schema.
///
/// # Errors
///
/// Returns the reason why the call is rejected.
///
/// # Examples
///
/// ```
/// use innkeeper_toolcall::{Completeness, RawArguments, Tool, Tools, resolve_call};
///
/// let schema = serde_json::json!({"properties": {"count": {"type": "integer"}}});
/// let tools = Tools::from_iter([Tool::new("list", "Lists files.", schema)]);
/// let arguments = RawArguments::Text("{'count': '3',}");
/// let call = resolve_call(&tools, "LIST", arguments, Completeness::Complete)?;
/// assert_eq!(call.name, "list");
/// assert_eq!(call.arguments.to_string(), r#"{"count":3}"#);
/// for repair in &call.repairs {
///     println!("{repair:?}");
/// }
/// # Ok::<(), innkeeper_toolcall::RejectedCall>(())
/// ```
pub fn resolve_call(
    tools: &Tools,
    raw_name: &str,
    arguments: RawArguments<'_>,
    completeness: Completeness,
) -> Result<ResolvedCall, RejectedCall> {
    let Some(matched) = resolve(tools, raw_name) else {
        let suggestions = suggest(tools, raw_name);
        return Err(RejectedCall {
            name: raw_name.to_owned(),
            reason: RejectReason::UnknownTool,
            suggestions,
        });
    };
    let tool = matched.tool;
    let mut repairs: Vec<Repair> = matched.repair.into_iter().collect();
    let is_raw = matches!(arguments, RawArguments::TextPairs(_));
    let object =
        parse_arguments(tool, arguments, completeness, &mut repairs).map_err(|reason| {
            RejectedCall { name: tool.name.clone(), reason, suggestions: Vec::new() }
        })?;
    if let Some(reason) = find_swallowed_argument(tool, &object, is_raw) {
        return Err(RejectedCall { name: tool.name.clone(), reason, suggestions: Vec::new() });
    }
    let arguments = coerce(object, &tool.input_schema, &mut repairs);
    Ok(ResolvedCall { name: tool.name.clone(), arguments, repairs })
}

/// Parses the arguments into an object.
fn parse_arguments(
    tool: &Tool,
    arguments: RawArguments<'_>,
    completeness: Completeness,
    repairs: &mut Vec<Repair>,
) -> Result<Json, RejectReason> {
    if completeness == Completeness::Truncated {
        return Err(RejectReason::Truncated);
    }
    match arguments {
        RawArguments::Text(text)
            if text.trim().is_empty() && completeness == Completeness::Complete =>
        {
            Ok(empty_object(repairs))
        }
        RawArguments::Text(text) => into_object(
            parse_lenient(text, completeness, repairs).map_err(RejectReason::InvalidJson)?,
            repairs,
        ),
        RawArguments::Value(json) if json.exceeds_depth(MAX_DEPTH) => Err(RejectReason::TooDeep),
        RawArguments::Value(json) => into_object(json, repairs),
        RawArguments::TextPairs(pairs) => object_from_pairs(tool, pairs),
    }
}

/// Converts `json` into an object. Accepts an object, a string with the JSON text of an object, and
/// an empty value.
fn into_object(json: Json, repairs: &mut Vec<Repair>) -> Result<Json, RejectReason> {
    match json {
        Json::Object(_) => Ok(json),
        Json::Null => Ok(empty_object(repairs)),
        Json::String(text) if text.trim().is_empty() => Ok(empty_object(repairs)),
        Json::String(text) => {
            let mut inner_repairs = Vec::new();
            let inside = parse_embedded(&text, MAX_DEPTH, "", &mut inner_repairs)
                .filter(|json| matches!(json, Json::Object(_)))
                .ok_or(RejectReason::NotAnObject("a string"))?;
            let coercion =
                Repair::Coercion { pointer: String::new(), kind: CoercionKind::StringToJson };
            push_repair(repairs, coercion);
            inner_repairs.into_iter().for_each(|repair| push_repair(repairs, repair));
            Ok(inside)
        }
        Json::Bool(_) => Err(RejectReason::NotAnObject("a boolean")),
        Json::Number(_) => Err(RejectReason::NotAnObject("a number")),
        Json::Array(_) => Err(RejectReason::NotAnObject("an array")),
    }
}

fn empty_object(repairs: &mut Vec<Repair>) -> Json {
    push_repair(
        repairs,
        Repair::Coercion { pointer: String::new(), kind: CoercionKind::EmptyToObject },
    );
    Json::Object(Vec::new())
}

fn object_from_pairs(tool: &Tool, pairs: Vec<(String, String)>) -> Result<Json, RejectReason> {
    let mut seen = HashSet::new();
    if let Some((duplicate, _)) = pairs.iter().find(|(key, _)| !seen.insert(key.as_str())) {
        return Err(RejectReason::DuplicateArgument(duplicate.clone()));
    }
    let root = &tool.input_schema;
    let members = pairs.into_iter().map(|(key, text)| {
        let value = coerce_text(&text, tool.property(&key), root);
        (key, value)
    });
    Ok(Json::Object(members.collect()))
}

/// Markup before the name of an argument and after it, in the syntaxes with raw values.
const ARGUMENT_MARKUP: &[(&str, &str)] = &[
    ("<parameter=", ">"),
    ("parameter name=\"", "\""),
    ("parameter name='", "'"),
    ("<param name=\"", "\""),
    ("<param name='", "'"),
    ("<arg_key>", "</arg_key>"),
    ("<|open|>argument key=\"", "\""),
];

/// The starts of whole calls. Arguments after such a start belong to an example.
const CALL_MARKUP: &[&str] =
    &["<function=", "<function name=", "invoke name=", "<tool_call>", "<|open|>call "];

/// Finds a declared argument that is missing and whose markup a string contains. Servers that parse
/// such syntaxes themselves make this mistake as well. In JSON, balanced markup is code.
fn find_swallowed_argument(tool: &Tool, arguments: &Json, is_raw: bool) -> Option<RejectReason> {
    let Json::Object(members) = arguments else { return None };
    let missing_names: Vec<&str> =
        tool.property_names().filter(|name| members.iter().all(|(key, _)| key != name)).collect();
    if missing_names.is_empty() {
        return None;
    }
    for (argument, value) in members {
        let Json::String(text) = value else { continue };
        if !text.contains('<') {
            continue;
        }
        let example = CALL_MARKUP.iter().filter_map(|start| find(text, start)).min();
        let text = &text[..example.unwrap_or(text.len())];
        let markup: Vec<_> =
            ARGUMENT_MARKUP.iter().filter(|(before, _)| find(text, before).is_some()).collect();
        for missing in &missing_names {
            let is_marked = markup.iter().any(|(before, after)| {
                let start = find(text, &format!("{before}{missing}{after}"));
                start.is_some_and(|start| is_raw || is_unbalanced(text, start))
            });
            if is_marked {
                let argument = argument.clone();
                let missing = (*missing).to_owned();
                return Some(RejectReason::SwallowedArgument { argument, missing });
            }
        }
    }
    None
}

/// Finds a text in a value, which may be long: several times faster than [`str::find`].
fn find(text: &str, wanted: &str) -> Option<usize> {
    memmem::find(text.as_bytes(), wanted.as_bytes())
}

/// The ends of arguments in the syntaxes with raw values.
const ARGUMENT_ENDS: &[&str] = &["</parameter>", "</param>", "</arg_value>", "<|close|>argument"];

/// Whether the argument that starts in a text has no end there, or stands behind the end of another
/// one: as code, it would have both.
fn is_unbalanced(text: &str, start: usize) -> bool {
    let (before, after) = text.split_at(start);
    has_argument_end(before) || !has_argument_end(after)
}

fn has_argument_end(text: &str) -> bool {
    ARGUMENT_ENDS.iter().any(|end| find(text, end).is_some())
}

impl std::error::Error for RejectedCall {}

/// Formats the reason of the rejection as a message for the model.
impl fmt::Display for RejectedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = quote_backticks(&self.name);
        match &self.reason {
            RejectReason::UnknownTool => {
                write!(f, "there is no tool {name}")?;
                let names: Vec<String> =
                    self.suggestions.iter().map(|name| quote_backticks(name)).collect();
                match names.split_last() {
                    None => Ok(()),
                    Some((only, [])) => write!(f, "; did you mean {only}?"),
                    Some((last, others)) => {
                        write!(f, "; did you mean {} or {last}?", others.join(", "))
                    }
                }
            }
            RejectReason::TooLong(limit) => write!(f, "the call is longer than {limit} bytes"),
            RejectReason::Malformed(message) => f.write_str(message),
            RejectReason::Truncated => {
                write!(f, "the call of {name} is truncated")
            }
            RejectReason::InvalidJson(error) => {
                write!(f, "the arguments of {name} are not valid JSON: {error}")
            }
            RejectReason::NotAnObject(found) => {
                write!(f, "the arguments of {name} must be a JSON object, found {found}")
            }
            RejectReason::DuplicateArgument(argument) => {
                write!(f, "the argument {} of {name} is given twice", quote_backticks(argument))
            }
            RejectReason::SwallowedArgument { argument, missing } => {
                let argument = quote_backticks(argument);
                let missing = quote_backticks(missing);
                write!(
                    f,
                    "the argument {argument} of {name} contains the markup of {missing}, which is \
                     missing; write {missing} as an argument of its own"
                )
            }
            RejectReason::TooDeep => {
                write!(f, "the arguments of {name} are nested deeper than {MAX_DEPTH} levels")
            }
        }
    }
}
