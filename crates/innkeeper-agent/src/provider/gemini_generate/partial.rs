//! A call whose arguments come value by value. Vertex AI sends them so to who asks for it; nobody
//! does here, but a server in between may.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::provider::codec::{Fault, Fields, PARTS};

/// The deepest value of arguments: what reads JSON here goes no deeper.
const DEPTH: usize = 100;

/// A call so far.
pub(super) struct Partial {
    pub(super) id: String,
    pub(super) name: String,
    arguments: Value,
    signature: Option<String>,
}

enum Segment {
    Name(String),
    Index(usize),
}

impl Partial {
    pub(super) fn new(part: &Fields<'_>, call: &Fields<'_>) -> Self {
        Self {
            id: call.text("id").unwrap_or_default(),
            name: call.text("name").unwrap_or_default(),
            arguments: Value::Object(Map::new()),
            signature: part.text("thoughtSignature"),
        }
    }

    /// Takes the values that one piece of the call brings.
    pub(super) fn add(&mut self, call: &Fields<'_>) -> Result<(), Fault> {
        for argument in call.parts("partialArgs")? {
            let argument = Fields::of(argument).unwrap_or_default();
            let path = argument.text("jsonPath").unwrap_or_default();
            let slot = slot(&mut self.arguments, &path).ok_or_else(|| {
                Fault::unreadable(format!("an argument of a call is at `{path}`, which is no path"))
            })?;
            match (&mut *slot, argument.text("stringValue")) {
                (Value::String(before), Some(more)) => before.push_str(&more),
                (_, Some(text)) => *slot = Value::String(text),
                (_, None) => {
                    let value = argument.get("numberValue").or_else(|| argument.get("boolValue"));
                    let value = value.and_then(|value| serde_json::from_str(value.get()).ok());
                    *slot = value.unwrap_or_default();
                }
            }
        }
        Ok(())
    }

    pub(super) fn arguments(&self) -> String {
        self.arguments.to_string()
    }

    /// The part that would have come if the call had come whole.
    pub(super) fn part(&self) -> Option<Box<RawValue>> {
        let mut call = json!({"name": self.name, "args": self.arguments});
        if !self.id.is_empty() {
            call["id"] = Value::from(self.id.as_str());
        }
        let mut part = json!({"functionCall": call});
        if let Some(signature) = &self.signature {
            part["thoughtSignature"] = Value::from(signature.as_str());
        }
        to_raw_value(&part).ok()
    }
}

/// Where in the arguments a path leads, made on the way.
fn slot<'v>(arguments: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    let mut at = arguments;
    let segments = segments(path).filter(|it| !it.is_empty() && it.len() <= DEPTH)?;
    for segment in segments {
        at = match segment {
            Segment::Name(name) => {
                if !at.is_object() {
                    *at = Value::Object(Map::new());
                }
                at.as_object_mut()?.entry(name).or_insert(Value::Null)
            }
            Segment::Index(index) => {
                if !at.is_array() {
                    *at = Value::Array(Vec::new());
                }
                let items = at.as_array_mut()?;
                if index == items.len() && index < PARTS {
                    items.push(Value::Null);
                }
                items.get_mut(index)?
            }
        };
    }
    Some(at)
}

/// The segments of a JSON Path that names one value.
fn segments(path: &str) -> Option<Vec<Segment>> {
    let mut rest = path.strip_prefix('$')?;
    let mut segments = Vec::new();
    while !rest.is_empty() {
        let segment = if let Some(name) = rest.strip_prefix('.') {
            let end = name.find(['.', '[']).unwrap_or(name.len());
            rest = &name[end..];
            Segment::Name(name.get(..end).filter(|name| !name.is_empty())?.to_owned())
        } else {
            let inner = rest.strip_prefix('[')?;
            let quote = inner.chars().next().filter(|it| matches!(it, '\'' | '"'));
            let (inner, behind) = match quote {
                Some(quote) => inner[1..].split_once(&format!("{quote}]"))?,
                None => inner.split_once(']')?,
            };
            rest = behind;
            match quote {
                Some(_) => Segment::Name(inner.to_owned()),
                None => Segment::Index(inner.parse().ok()?),
            }
        };
        segments.push(segment);
    }
    Some(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(arguments: &[&str]) -> Result<String, Fault> {
        let mut call = Partial::new(&Fields::default(), &Fields::default());
        for argument in arguments {
            let text = format!(r#"{{"partialArgs":[{argument}]}}"#);
            call.add(&Fields::parse(&text).unwrap())?;
        }
        Ok(call.arguments())
    }

    #[test]
    fn values_come_to_the_place_that_their_path_names() {
        let told = after(&[
            r#"{"jsonPath":"$.city","stringValue":"Par","willContinue":true}"#,
            r#"{"jsonPath":"$.city","stringValue":"is"}"#,
            r#"{"jsonPath":"$.days[0].n","numberValue":1.5}"#,
            r#"{"jsonPath":"$.days[0]['a.b']","boolValue":true}"#,
            r#"{"jsonPath":"$.days[1]","nullValue":"NULL_VALUE"}"#,
            r#"{"jsonPath":"$[\"x\"]","numberValue":3}"#,
        ]);
        let expected = r#"{"city":"Paris","days":[{"n":1.5,"a.b":true},null],"x":3}"#;
        assert_eq!(told.unwrap(), expected);
    }

    #[test]
    fn a_path_that_is_none_is_a_fault() {
        let deep = |depth: usize| {
            let path = ".a".repeat(depth);
            after(&[&format!(r#"{{"jsonPath":"${path}","stringValue":"x"}}"#)])
        };
        assert!(deep(DEPTH).is_ok() && deep(DEPTH + 1).is_err());
        for path in
            ["", "$", "a", "$a", "$.", "$..a", "$[", "$[x]", "$[1]", "$['a", "$['a'", "$[']"]
        {
            let argument = format!(r#"{{"jsonPath":"{path}","stringValue":"x"}}"#);
            assert!(after(&[&argument]).is_err(), "{path}");
        }
    }
}
