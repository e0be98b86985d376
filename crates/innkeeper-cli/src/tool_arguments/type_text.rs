//! Writes the type of a JSON Schema as short text: `string`, `integer[]`, `"fast" | "slow"`.

use serde_json::Value;

use super::expected_type::{ObjectSchema, required_keys, resolve_reference};

/// Maximum number of visited schema nodes; references can repeat a schema without end.
const MAX_NODES: usize = 200;

/// Maximum nesting of objects whose members are shown.
const MAX_OBJECT_DEPTH: usize = 2;

/// Maximum nesting of arrays, references and combined schemas.
const MAX_DEPTH: usize = 12;

/// Maximum number of characters of a type whose objects show their members.
const MAX_DETAILED_CHARS: usize = 100;

/// Maximum number of listed literals of an `enum`.
const MAX_LITERALS: usize = 40;

/// Text of a type that allows every value.
const ANY: &str = "any";

/// Returns the type of a schema, with the members of its objects if the text stays short.
pub(crate) fn type_text(root: &Value, schema: &Value) -> String {
    let write = |object_depth| {
        let mut writer = TypeWriter { root, remaining_nodes: MAX_NODES };
        writer.write(schema, object_depth, MAX_DEPTH)
    };
    let detailed = write(MAX_OBJECT_DEPTH);
    if detailed.chars().count() <= MAX_DETAILED_CHARS { detailed } else { write(0) }
}

struct TypeWriter<'a> {
    root: &'a Value,
    remaining_nodes: usize,
}

impl TypeWriter<'_> {
    fn write(&mut self, schema: &Value, object_depth: usize, depth: usize) -> String {
        let Some(remaining) = self.remaining_nodes.checked_sub(1).filter(|_| depth > 0) else {
            return "…".to_owned();
        };
        self.remaining_nodes = remaining;
        if let Some(target) = resolve_reference(self.root, schema) {
            return self.write(target, object_depth, depth - 1);
        }
        if let Some(literal) = schema.get("const") {
            return literal.to_string();
        }
        if let Some(literals) = schema.get("enum").and_then(Value::as_array) {
            return literals_text(literals);
        }
        for (keyword, separator) in [("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")] {
            if let Some(branches) = schema.get(keyword).and_then(Value::as_array) {
                let mut texts: Vec<String> = branches
                    .iter()
                    .map(|branch| self.write(branch, object_depth, depth - 1))
                    .collect();
                if keyword == "allOf" {
                    texts.retain(|text| text != ANY);
                }
                if let Some(joined) = join_distinct(texts, separator) {
                    return joined;
                }
            }
        }
        let names: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ if schema.get("properties").is_some() => vec!["object"],
            _ if schema.get("items").is_some() => vec!["array"],
            _ => Vec::new(),
        };
        let texts = names.into_iter().map(|name| match name {
            "array" => self.array_text(schema, object_depth, depth),
            "object" => self.object_text(schema, object_depth, depth),
            other => other.to_owned(),
        });
        join_distinct(texts.collect(), " | ").unwrap_or_else(|| ANY.to_owned())
    }

    fn array_text(&mut self, schema: &Value, object_depth: usize, depth: usize) -> String {
        let items = match schema.get("items") {
            Some(items) => self.write(items, object_depth, depth - 1),
            None => ANY.to_owned(),
        };
        // A union needs parentheses; the members of an object have braces.
        if items.contains(' ') && !items.starts_with('{') {
            format!("({items})[]")
        } else {
            format!("{items}[]")
        }
    }

    fn object_text(&mut self, schema: &Value, object_depth: usize, depth: usize) -> String {
        let properties = ObjectSchema::from_part(self.root, schema).properties;
        if properties.is_empty() || object_depth == 0 {
            return "object".to_owned();
        }
        let required = required_keys(schema);
        let mut members = Vec::new();
        for (name, property) in properties {
            let optional = if required.contains(name) { "" } else { "?" };
            let text = self.write(property, object_depth - 1, depth - 1);
            members.push(format!("{name}{optional}: {text}"));
        }
        format!("{{{}}}", members.join(", "))
    }
}

fn literals_text(literals: &[Value]) -> String {
    let mut texts: Vec<String> =
        literals.iter().take(MAX_LITERALS).map(ToString::to_string).collect();
    let more = literals.len().saturating_sub(MAX_LITERALS);
    if more > 0 {
        texts.push(format!("… ({more} more)"));
    }
    texts.join(" | ")
}

/// Joins distinct texts; returns `None` without texts.
fn join_distinct(texts: Vec<String>, separator: &str) -> Option<String> {
    let mut distinct: Vec<String> = Vec::new();
    for text in texts {
        if !distinct.contains(&text) {
            distinct.push(text);
        }
    }
    (!distinct.is_empty()).then(|| distinct.join(separator))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(schema: &Value) -> String {
        type_text(schema, schema)
    }

    #[test]
    fn a_type_is_written_as_in_a_signature() {
        for (schema, expected) in [
            (json!({"type": "string"}), "string"),
            (json!({"type": ["integer", "null"]}), "integer | null"),
            (json!({"type": "array"}), "any[]"),
            (json!({"type": "array", "items": {"type": "string"}}), "string[]"),
            (json!({"items": {"enum": ["a", 2]}}), "(\"a\" | 2)[]"),
            (json!({"const": 5}), "5"),
            (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "string | null"),
            (json!({"oneOf": [{"type": "string"}, {"type": "string"}]}), "string"),
            (json!({"allOf": [{"minLength": 1}, {"type": "string"}]}), "string"),
            (json!({"type": "object"}), "object"),
            (
                json!({"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}),
                "{a: string, b?: any}",
            ),
            (json!({}), "any"),
            (json!(true), "any"),
            (json!({"type": 7}), "any"),
            (json!({"$ref": "#/$defs/id", "$defs": {"id": {"type": "integer"}}}), "integer"),
        ] {
            assert_eq!(text(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn a_long_or_deep_object_is_only_an_object() {
        let member = json!({"type": "string"});
        let many: serde_json::Map<String, Value> =
            (0..30).map(|number| (format!("member{number}"), member.clone())).collect();
        assert_eq!(text(&json!({"properties": many})), "object");
        let deep = json!({"properties": {"a": {"properties": {"b": {"properties": {"c": {}}}}}}});
        assert_eq!(text(&deep), "{a?: {b?: object}}");
    }

    #[test]
    fn endless_and_exploding_references_end() {
        let endless = json!({"$ref": "#"});
        assert_eq!(text(&endless), "…");
        let branches: Vec<Value> = (0..20).map(|_| json!({"$ref": "#/$defs/a"})).collect();
        let exploding = json!({
            "$ref": "#/$defs/a",
            "$defs": {"a": {"anyOf": branches, "items": {"$ref": "#/$defs/a"}}}
        });
        assert!(text(&exploding).chars().count() < 2_000);
    }

    #[test]
    fn a_long_list_of_literals_says_how_many_more_there_are() {
        let literals: Vec<Value> = (0..MAX_LITERALS + 2).map(Value::from).collect();
        let text = text(&json!({"enum": literals}));
        assert!(text.ends_with("39 | … (2 more)"), "{text}");
    }
}
