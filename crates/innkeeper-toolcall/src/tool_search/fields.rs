//! The searched texts of a tool.

use serde_json::Value;

use crate::tool::Tool;

/// Maximum number of bytes of a name.
const MAX_NAME_BYTES: usize = 1_024;

/// Maximum number of values of a schema that are visited.
const MAX_SCHEMA_VALUES: usize = 2_000;

pub(super) const FIELD_COUNT: usize = 4;

/// The texts of a tool by field: the words of its name, its description, the names of its parameters,
/// and the titles, descriptions and permitted values of its parameters.
pub(super) type FieldTexts = [String; FIELD_COUNT];

/// Collects the texts of a tool. The texts behind the name have at most `max_bytes` bytes together.
pub(super) fn field_texts(tool: &Tool, max_bytes: usize) -> FieldTexts {
    let mut collector = Collector { remaining_bytes: max_bytes, ..Collector::default() };
    let description = collector.cut(&tool.description).to_owned();
    collector.visit_schema(&tool.input_schema);
    let Collector { names, texts, .. } = collector;
    [prefix(&tool.name, MAX_NAME_BYTES).to_owned(), description, names, texts]
}

/// Returns the longest prefix of at most `max_bytes` bytes.
pub(super) fn prefix(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

#[derive(Default)]
struct Collector {
    names: String,
    texts: String,
    remaining_bytes: usize,
}

impl Collector {
    /// Returns the part of a text that the limit permits.
    fn cut<'t>(&mut self, text: &'t str) -> &'t str {
        let taken = prefix(text, self.remaining_bytes);
        let is_cut = taken.len() < text.len();
        self.remaining_bytes = if is_cut { 0 } else { self.remaining_bytes - taken.len() };
        taken
    }

    fn push_name(&mut self, text: &str) {
        let taken = self.cut(text);
        self.names.push_str(taken);
        self.names.push('\n');
    }

    fn push_text(&mut self, text: &Value) {
        if let Some(text) = text.as_str() {
            let taken = self.cut(text);
            self.texts.push_str(taken);
            self.texts.push('\n');
        }
    }

    /// Visits the values of a schema in breadth, so that the limits keep the outer parameters.
    fn visit_schema(&mut self, schema: &Value) {
        let mut level = vec![schema];
        let mut visited = 0;
        while !level.is_empty() {
            let mut next = Vec::new();
            for value in level {
                visited += 1;
                if visited > MAX_SCHEMA_VALUES || self.remaining_bytes == 0 {
                    return;
                }
                match value {
                    Value::Object(members) => self.visit_object(members, &mut next),
                    Value::Array(items) => next.extend(items),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
                }
            }
            level = next;
        }
    }

    fn visit_object<'v>(
        &mut self,
        members: &'v serde_json::Map<String, Value>,
        next: &mut Vec<&'v Value>,
    ) {
        for (key, value) in members {
            match (key.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    for (name, schema) in properties {
                        self.push_name(name);
                        next.push(schema);
                    }
                }
                ("description" | "title" | "const", text) => self.push_text(text),
                ("enum", Value::Array(values)) => {
                    values.iter().for_each(|value| self.push_text(value));
                }
                ("default" | "examples" | "example", _) => {}
                (_, value) => next.push(value),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parameters_of_each_depth_are_found() {
        let schema = json!({"properties": {
            "city": {"description": "Where", "enum": ["Graz", 1]},
            "range": {"anyOf": [{"type": "object", "properties": {"from": {"title": "Begin"}}}]}
        }});
        let tool = Tool::new("a.b", "Text", schema);
        let [name, description, names, texts] = field_texts(&tool, 1_000);
        assert_eq!((&*name, &*description), ("a.b", "Text"));
        assert_eq!(names.split_whitespace().collect::<Vec<_>>(), ["city", "range", "from"]);
        assert_eq!(texts.split_whitespace().collect::<Vec<_>>(), ["Where", "Graz", "Begin"]);
    }

    #[test]
    fn the_texts_of_a_tool_have_a_limit() {
        let schema = json!({"properties": {"é": {"description": "é".repeat(9)}, "x": {}}});
        let tool = Tool::new("name", "é".repeat(3), schema);
        let bytes = |limit| field_texts(&tool, limit).map(|text| text.trim_end().len());
        assert_eq!(bytes(26), [4, 6, 4, 16]);
        assert_eq!(bytes(6), [4, 6, 0, 0]);
        assert_eq!(bytes(5), [4, 4, 0, 0]);
        // The schema and the list are values too.
        let schema = |values| {
            let mut values = vec![json!({}); values];
            values.push(json!({"title": "last"}));
            json!({"anyOf": values})
        };
        let texts = |values| field_texts(&Tool::new("", "", schema(values)), 99)[3].clone();
        assert_eq!(texts(MAX_SCHEMA_VALUES - 3), "last\n");
        assert_eq!(texts(MAX_SCHEMA_VALUES - 2), "");
    }
}
