//! Upper bound of the cost of validating a value, computed by visiting what the validator may
//! visit.

use serde_json::Value;

/// Maximum number of visits of a value with a schema: about 0.1 s; usual arguments need a few
/// hundred.
pub(super) const MAX_VISITS: usize = 1 << 18;

/// Maximum number of nested schemas, including references. Compiling and applying each take up to 2
/// KiB of stack in a debug build; the smallest expected stack has 1 MiB.
pub(super) const MAX_SCHEMA_NESTING: usize = 256;

/// Keywords whose subschema applies to the same value.
const SAME_VALUE_KEYWORDS: &[&str] = &["not", "if", "then", "else"];

/// Keywords with a list of subschemas for the same value.
const SCHEMA_LIST_KEYWORDS: &[&str] = &["allOf", "anyOf", "oneOf"];

/// Keywords with named subschemas for the same value.
const DEPENDENT_KEYWORDS: &[&str] = &["dependentSchemas", "dependencies"];

/// Keywords whose subschema applies to every member.
const MEMBER_KEYWORDS: &[&str] =
    &["additionalProperties", "unevaluatedProperties", "propertyNames"];

/// Keywords whose subschema applies to every item.
const ITEM_KEYWORDS: &[&str] = &["items", "additionalItems", "unevaluatedItems", "contains"];

/// Keywords with a subschema for each of the first items.
const TUPLE_KEYWORDS: &[&str] = &["prefixItems", "items"];

/// Cost of a validation.
#[derive(Debug, Default)]
pub(super) struct ValidationCost {
    /// Number of applications of a schema to a value.
    pub(super) visits: usize,
    /// Number of bytes in all strings and keys.
    pub(super) text_bytes: usize,
    /// Number of bytes in the longest string or key.
    pub(super) max_string_bytes: usize,
}

impl ValidationCost {
    /// Returns the maximum cost of applying `schema` to `value`, or `None` if the cost exceeds the
    /// limits.
    pub(super) fn estimate(schema: &Value, value: &Value) -> Option<Self> {
        let mut load = Self::default();
        load.add_value(value);
        CostWalker { root: schema, cost: &mut load }.visit(schema, value, 0)?;
        Some(load)
    }

    fn add_value(&mut self, value: &Value) {
        let mut open = vec![value];
        while let Some(next) = open.pop() {
            match next {
                Value::String(text) => self.add_text(text),
                Value::Array(items) => open.extend(items),
                Value::Object(members) => {
                    members.keys().for_each(|key| self.add_text(key));
                    open.extend(members.values());
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
    }

    fn add_text(&mut self, text: &str) {
        self.text_bytes += text.len();
        self.max_string_bytes = self.max_string_bytes.max(text.len());
    }
}

struct CostWalker<'s, 'l> {
    root: &'s Value,
    cost: &'l mut ValidationCost,
}

impl<'s> CostWalker<'s, '_> {
    fn visit(&mut self, schema: &'s Value, value: &Value, nested: usize) -> Option<()> {
        let lists = ["enum", "required"].into_iter();
        let lists = lists.filter_map(|keyword| schema.get(keyword)?.as_array());
        self.cost.visits += 1 + lists.map(Vec::len).sum::<usize>();
        if self.cost.visits > MAX_VISITS || nested > MAX_SCHEMA_NESTING {
            return None;
        }
        if !schema.is_object() {
            return Some(());
        }
        self.visit_in_place(schema, value, nested + 1)?;
        // To find unevaluated members, the validator applies every subschema once more.
        let keywords = ["unevaluatedProperties", "unevaluatedItems"].into_iter();
        for _ in keywords.filter(|keyword| schema.get(keyword).is_some()) {
            self.visit_in_place(schema, value, nested + 1)?;
        }
        match value {
            Value::Object(members) => members
                .iter()
                .try_for_each(|(key, member)| self.visit_member(schema, key, member, nested + 1)),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .try_for_each(|(at, item)| self.visit_item(schema, at, item, nested + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(()),
        }
    }

    fn visit_in_place(&mut self, schema: &'s Value, value: &Value, nested: usize) -> Option<()> {
        for keyword in SAME_VALUE_KEYWORDS {
            if let Some(subschema) = schema.get(keyword) {
                self.visit(subschema, value, nested)?;
            }
        }
        for keyword in SCHEMA_LIST_KEYWORDS {
            let subschemas = schema.get(keyword).and_then(Value::as_array);
            subschemas
                .into_iter()
                .flatten()
                .try_for_each(|subschema| self.visit(subschema, value, nested))?;
        }
        for keyword in DEPENDENT_KEYWORDS {
            let subschemas = schema.get(keyword).and_then(Value::as_object);
            let subschemas = subschemas.into_iter().flat_map(|subschemas| subschemas.values());
            subschemas
                .into_iter()
                .try_for_each(|subschema| self.visit(subschema, value, nested))?;
        }
        match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) => {
                let target = self.root.pointer(reference.strip_prefix('#')?)?;
                self.visit(target, value, nested)
            }
            None => Some(()),
        }
    }

    fn visit_member(
        &mut self,
        schema: &'s Value,
        key: &str,
        value: &Value,
        nested: usize,
    ) -> Option<()> {
        if let Some(subschema) = schema.get("properties").and_then(|properties| properties.get(key))
        {
            self.visit(subschema, value, nested)?;
        }
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        for subschema in patterns.into_iter().flat_map(|patterns| patterns.values()) {
            self.visit(subschema, value, nested)?;
        }
        MEMBER_KEYWORDS
            .iter()
            .filter_map(|keyword| schema.get(keyword))
            .try_for_each(|subschema| self.visit(subschema, value, nested))
    }

    fn visit_item(
        &mut self,
        schema: &'s Value,
        at: usize,
        value: &Value,
        nested: usize,
    ) -> Option<()> {
        for keyword in ITEM_KEYWORDS {
            if let Some(subschema) = schema.get(keyword).filter(|subschema| !subschema.is_array()) {
                self.visit(subschema, value, nested)?;
            }
        }
        for keyword in TUPLE_KEYWORDS {
            let subschema = schema
                .get(keyword)
                .and_then(Value::as_array)
                .and_then(|subschemas| subschemas.get(at));
            if let Some(subschema) = subschema {
                self.visit(subschema, value, nested)?;
            }
        }
        Some(())
    }
}
