//! Finds the annotated properties of a tool's argument schema, in one pass and without a tree.

use std::borrow::Cow;

use super::param::{PARAM_LIMIT, PARAM_NAME_LIMIT, Param, ParamHeaderError as Error};
use crate::envelope::DEPTH_LIMIT;
use crate::skim::Cursor;
use crate::text;

/// The longest piece of a schema's text in an error, in characters.
const SHOWN: usize = 100;

/// What a keyword of JSON Schema holds.
enum Keyword {
    Annotation,
    Type,
    /// The schemas of an object's properties, by name.
    Properties,
    /// Other schemas by name.
    Map,
    /// One schema, or a list of them.
    Schemas,
    /// No schema.
    Data,
}

impl Keyword {
    /// Knows the keywords of every draft from 4 to 2020-12.
    fn of(name: &str) -> Self {
        match name {
            "x-mcp-header" => Self::Annotation,
            "type" => Self::Type,
            "properties" => Self::Properties,
            "patternProperties" | "dependentSchemas" | "dependencies" | "$defs" | "definitions" => {
                Self::Map
            }
            "items"
            | "additionalItems"
            | "prefixItems"
            | "contains"
            | "unevaluatedItems"
            | "additionalProperties"
            | "propertyNames"
            | "unevaluatedProperties"
            | "allOf"
            | "anyOf"
            | "oneOf"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contentSchema" => Self::Schemas,
            _ => Self::Data,
        }
    }
}

/// Every annotated property of the schema.
pub(super) fn annotated(schema: &str) -> Result<Vec<Param>, Error> {
    let cursor = Cursor::new(schema);
    let mut search = Search { cursor, path: Vec::new(), depth: 0, found: Vec::new() };
    search.schema(true)?;
    Ok(search.found)
}

struct Search<'a> {
    cursor: Cursor<'a>,
    /// The properties that lead to the schema at hand, if only properties do.
    path: Vec<Cow<'a, str>>,
    depth: usize,
    found: Vec<Param>,
}

impl<'a> Search<'a> {
    /// Reads the schema that comes next; `reachable` if only properties lead to it.
    fn schema(&mut self, reachable: bool) -> Result<(), Error> {
        if !self.cursor.enter(b'{') {
            self.cursor.value();
            return Ok(());
        }
        self.deeper()?;
        let (mut annotation, mut type_) = (None, None);
        while let Some(key) = self.cursor.next_key() {
            match Keyword::of(&unescaped(key)) {
                Keyword::Annotation => annotation = self.cursor.value(),
                Keyword::Type => type_ = self.cursor.value(),
                Keyword::Properties => self.map(reachable)?,
                Keyword::Map => self.map(false)?,
                Keyword::Schemas => self.schemas()?,
                Keyword::Data => {
                    self.cursor.value();
                }
            }
        }
        self.depth -= 1;
        match annotation {
            Some(annotation) => self.keep(annotation, type_, reachable),
            None => Ok(()),
        }
    }

    fn map(&mut self, reachable: bool) -> Result<(), Error> {
        if !self.cursor.enter(b'{') {
            self.cursor.value();
            return Ok(());
        }
        self.deeper()?;
        while let Some(name) = self.cursor.next_key() {
            self.path.push(unescaped(name));
            self.schema(reachable)?;
            self.path.pop();
        }
        self.depth -= 1;
        Ok(())
    }

    fn schemas(&mut self) -> Result<(), Error> {
        if !self.cursor.enter(b'[') {
            return self.schema(false);
        }
        self.deeper()?;
        while self.cursor.next_element() {
            self.schema(false)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn deeper(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT { Err(Error::TooDeep) } else { Ok(()) }
    }

    fn keep(&mut self, raw: &str, type_: Option<&str>, reachable: bool) -> Result<(), Error> {
        let shown = |text: &str| text::printable(text, SHOWN);
        if !reachable || self.path.is_empty() {
            return Err(Error::OutOfReach { annotation: shown(raw) });
        }
        let property = shown(&self.path.join("."));
        let Some(name) = text::decode(raw) else {
            return Err(Error::NotText { property });
        };
        if name.is_empty() || name.len() > PARAM_NAME_LIMIT || !name.bytes().all(is_token) {
            return Err(Error::NotAName { property, name: shown(&name) });
        }
        let type_ = type_.unwrap_or("nothing");
        if !matches!(text::decode(type_).as_deref(), Some("string" | "integer" | "boolean")) {
            return Err(Error::NotPrimitive { property, found: shown(type_) });
        }
        if self.found.iter().any(|other| other.name.eq_ignore_ascii_case(&name)) {
            return Err(Error::Twice { property, name: shown(&name) });
        }
        if self.found.len() == PARAM_LIMIT {
            return Err(Error::TooMany);
        }
        let path = self.path.iter().map(|step| step.clone().into_owned()).collect();
        self.found.push(Param { name: name.into_owned(), path });
        Ok(())
    }
}

/// A key as it is meant.
fn unescaped(key: &str) -> Cow<'_, str> {
    if !key.contains('\\') {
        return Cow::Borrowed(key);
    }
    let decoded = text::decode(&format!("\"{key}\"")).map(Cow::into_owned);
    decoded.map_or(Cow::Borrowed(key), Cow::Owned)
}

/// Whether the byte may be in the name of a header (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
