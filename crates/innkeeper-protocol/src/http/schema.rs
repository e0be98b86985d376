//! Search for annotated properties in a tool's input schema, in one pass.

use std::borrow::Cow;

use super::param_headers::{
    MAX_PARAM_HEADERS, MAX_PARAM_NAME_BYTES, ParamHeader, ParamHeaderError as Error,
};
use crate::envelope::MAX_MESSAGE_DEPTH;
use crate::skim::Cursor;
use crate::text;

/// Maximum length of schema text quoted in an error, in characters.
const MAX_SHOWN_CHARS: usize = 100;

/// The kind of value that a JSON Schema keyword has.
enum SchemaKeyword {
    Annotation,
    Type,
    /// A map from property names to schemas.
    Properties,
    /// A map from other names to schemas.
    SchemaMap,
    /// One schema or a list of schemas.
    Schemas,
    /// A value that contains no schema.
    NonSchema,
}

impl SchemaKeyword {
    /// Supports the keywords of all drafts from 4 to 2020-12.
    fn from_name(name: &str) -> Self {
        match name {
            "x-mcp-header" => Self::Annotation,
            "type" => Self::Type,
            "properties" => Self::Properties,
            "patternProperties" | "dependentSchemas" | "dependencies" | "$defs" | "definitions" => {
                Self::SchemaMap
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
            _ => Self::NonSchema,
        }
    }
}

/// Returns every annotated property of the schema.
pub(super) fn find_annotated_params(schema: &str) -> Result<Vec<ParamHeader>, Error> {
    let cursor = Cursor::new(schema);
    let mut search = AnnotationSearch { cursor, path: Vec::new(), depth: 0, params: Vec::new() };
    search.visit_schema(true)?;
    Ok(search.params)
}

struct AnnotationSearch<'a> {
    cursor: Cursor<'a>,
    /// The property names that lead to the current schema, if only properties lead there.
    path: Vec<Cow<'a, str>>,
    depth: usize,
    params: Vec<ParamHeader>,
}

impl<'a> AnnotationSearch<'a> {
    /// Reads the next schema. `reachable` is whether only properties lead to the schema.
    fn visit_schema(&mut self, reachable: bool) -> Result<(), Error> {
        if !self.cursor.enter(b'{') {
            self.cursor.next_value();
            return Ok(());
        }
        self.enter_level()?;
        let mut annotation = None;
        let mut type_ = None;
        while let Some(key) = self.cursor.next_key() {
            match SchemaKeyword::from_name(&unescape_key(key)) {
                SchemaKeyword::Annotation => annotation = self.cursor.next_value(),
                SchemaKeyword::Type => type_ = self.cursor.next_value(),
                SchemaKeyword::Properties => self.visit_schema_map(reachable)?,
                SchemaKeyword::SchemaMap => self.visit_schema_map(false)?,
                SchemaKeyword::Schemas => self.visit_schemas()?,
                SchemaKeyword::NonSchema => {
                    self.cursor.next_value();
                }
            }
        }
        self.depth -= 1;
        match annotation {
            Some(annotation) => self.add_param(annotation, type_, reachable),
            None => Ok(()),
        }
    }

    fn visit_schema_map(&mut self, reachable: bool) -> Result<(), Error> {
        if !self.cursor.enter(b'{') {
            self.cursor.next_value();
            return Ok(());
        }
        self.enter_level()?;
        while let Some(name) = self.cursor.next_key() {
            self.path.push(unescape_key(name));
            self.visit_schema(reachable)?;
            self.path.pop();
        }
        self.depth -= 1;
        Ok(())
    }

    fn visit_schemas(&mut self) -> Result<(), Error> {
        if !self.cursor.enter(b'[') {
            return self.visit_schema(false);
        }
        self.enter_level()?;
        while self.cursor.next_element() {
            self.visit_schema(false)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn enter_level(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > MAX_MESSAGE_DEPTH { Err(Error::TooDeep) } else { Ok(()) }
    }

    fn add_param(&mut self, raw: &str, type_: Option<&str>, reachable: bool) -> Result<(), Error> {
        let shorten = |text: &str| text::printable(text, MAX_SHOWN_CHARS);
        if !reachable || self.path.is_empty() {
            return Err(Error::NotStaticPath { annotation: shorten(raw) });
        }
        let property = shorten(&self.path.join("."));
        let Some(name) = text::decode_string(raw) else {
            return Err(Error::NotString { property });
        };
        if name.is_empty() || name.len() > MAX_PARAM_NAME_BYTES || !name.bytes().all(is_token) {
            return Err(Error::InvalidName { property, name: shorten(&name) });
        }
        let type_ = type_.unwrap_or("nothing");
        if !matches!(text::decode_string(type_).as_deref(), Some("string" | "integer" | "boolean"))
        {
            return Err(Error::NotPrimitive { property, found: shorten(type_) });
        }
        if self.params.iter().any(|other| other.name.eq_ignore_ascii_case(&name)) {
            return Err(Error::Duplicate { property, name: shorten(&name) });
        }
        if self.params.len() == MAX_PARAM_HEADERS {
            return Err(Error::TooMany);
        }
        let path = self.path.iter().map(|key| key.clone().into_owned()).collect();
        self.params.push(ParamHeader { name: name.into_owned(), path });
        Ok(())
    }
}

/// Decodes the escapes of a key.
fn unescape_key(key: &str) -> Cow<'_, str> {
    if !key.contains('\\') {
        return Cow::Borrowed(key);
    }
    let decoded = text::decode_string(&format!("\"{key}\"")).map(Cow::into_owned);
    decoded.map_or(Cow::Borrowed(key), Cow::Owned)
}

/// Whether the byte may occur in a header name (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
