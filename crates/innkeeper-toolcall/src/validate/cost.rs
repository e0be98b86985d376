//! What applying a schema to a value can cost at most, found by going where a validator may go.

use serde_json::Value;

/// Visits of a value with a schema; takes about a tenth of a second, and arguments in use have a few
/// hundred.
pub(super) const VISITS: usize = 1 << 18;

/// The most schemas inside one another, references followed. Compiling or applying each takes up to
/// two kibibytes of stack in a debug build, and the smallest stack to be expected has one mebibyte.
pub(super) const NESTED: usize = 256;

/// Keywords whose subschema applies to the same value.
const SAME: &[&str] = &["not", "if", "then", "else"];

/// Keywords with a list of subschemas for the same value.
const ALTERNATIVES: &[&str] = &["allOf", "anyOf", "oneOf"];

/// Keywords with subschemas by name for the same value.
const DEPENDENT: &[&str] = &["dependentSchemas", "dependencies"];

/// Keywords whose subschema applies to every member.
const MEMBERS: &[&str] = &["additionalProperties", "unevaluatedProperties", "propertyNames"];

/// Keywords whose subschema applies to every item.
const ITEMS: &[&str] = &["items", "additionalItems", "unevaluatedItems", "contains"];

/// Keywords with a subschema for each of the first items.
const TUPLES: &[&str] = &["prefixItems", "items"];

/// What a run of the validator comes to.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// How often a schema is applied to a value.
    pub(super) visits: usize,
    /// The bytes of all strings and keys.
    pub(super) text: usize,
    /// The bytes of the longest string or key.
    pub(super) longest_text: usize,
}

impl Load {
    /// The most that applying `schema` to `value` can take; `None` if that is too much.
    pub(super) fn of(schema: &Value, value: &Value) -> Option<Self> {
        let mut load = Self::default();
        load.read(value);
        Walk { root: schema, load: &mut load }.visit(schema, value, 0)?;
        Some(load)
    }

    fn read(&mut self, value: &Value) {
        let mut open = vec![value];
        while let Some(one) = open.pop() {
            match one {
                Value::String(text) => self.read_text(text),
                Value::Array(items) => open.extend(items),
                Value::Object(members) => {
                    members.keys().for_each(|key| self.read_text(key));
                    open.extend(members.values());
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
    }

    fn read_text(&mut self, text: &str) {
        self.text += text.len();
        self.longest_text = self.longest_text.max(text.len());
    }
}

struct Walk<'s, 'l> {
    root: &'s Value,
    load: &'l mut Load,
}

impl<'s> Walk<'s, '_> {
    fn visit(&mut self, schema: &'s Value, value: &Value, nested: usize) -> Option<()> {
        let listed = ["enum", "required"].into_iter();
        let listed = listed.filter_map(|keyword| schema.get(keyword)?.as_array());
        self.load.visits += 1 + listed.map(Vec::len).sum::<usize>();
        if self.load.visits > VISITS || nested > NESTED {
            return None;
        }
        if !schema.is_object() {
            return Some(());
        }
        self.same(schema, value, nested + 1)?;
        // To learn what was evaluated, all that applies to the value is applied once more.
        let asks = ["unevaluatedProperties", "unevaluatedItems"].into_iter();
        for _ in asks.filter(|keyword| schema.get(keyword).is_some()) {
            self.same(schema, value, nested + 1)?;
        }
        match value {
            Value::Object(members) => {
                members.iter().try_for_each(|(key, one)| self.member(schema, key, one, nested + 1))
            }
            Value::Array(items) => items
                .iter()
                .enumerate()
                .try_for_each(|(at, item)| self.item(schema, at, item, nested + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(()),
        }
    }

    fn same(&mut self, schema: &'s Value, value: &Value, nested: usize) -> Option<()> {
        for keyword in SAME {
            if let Some(part) = schema.get(keyword) {
                self.visit(part, value, nested)?;
            }
        }
        for keyword in ALTERNATIVES {
            let parts = schema.get(keyword).and_then(Value::as_array);
            parts.into_iter().flatten().try_for_each(|part| self.visit(part, value, nested))?;
        }
        for keyword in DEPENDENT {
            let parts = schema.get(keyword).and_then(Value::as_object);
            let parts = parts.into_iter().flat_map(|parts| parts.values());
            parts.into_iter().try_for_each(|part| self.visit(part, value, nested))?;
        }
        match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) => {
                let target = self.root.pointer(reference.strip_prefix('#')?)?;
                self.visit(target, value, nested)
            }
            None => Some(()),
        }
    }

    fn member(&mut self, schema: &'s Value, key: &str, value: &Value, nested: usize) -> Option<()> {
        if let Some(part) = schema.get("properties").and_then(|properties| properties.get(key)) {
            self.visit(part, value, nested)?;
        }
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        for part in patterns.into_iter().flat_map(|patterns| patterns.values()) {
            self.visit(part, value, nested)?;
        }
        MEMBERS
            .iter()
            .filter_map(|keyword| schema.get(keyword))
            .try_for_each(|part| self.visit(part, value, nested))
    }

    fn item(&mut self, schema: &'s Value, at: usize, value: &Value, nested: usize) -> Option<()> {
        for keyword in ITEMS {
            if let Some(part) = schema.get(keyword).filter(|part| !part.is_array()) {
                self.visit(part, value, nested)?;
            }
        }
        for keyword in TUPLES {
            let part =
                schema.get(keyword).and_then(Value::as_array).and_then(|parts| parts.get(at));
            if let Some(part) = part {
                self.visit(part, value, nested)?;
            }
        }
        Some(())
    }
}
