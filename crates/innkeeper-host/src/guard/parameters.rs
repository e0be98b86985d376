//! A tool's declared arguments, and which of them contain code or prose.

use std::collections::HashSet;

use innkeeper_protocol::skim;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::text::{PathSegment, segment_names};

/// Maximum length of a reported name in bytes: a longer name is a sentence.
const MAX_NAME_LEN: usize = 64;

/// Words in an argument name for identifiers, which are never code.
const IDENTIFIER_WORDS: [&str; 26] = [
    "host",
    "hostname",
    "ip",
    "addr",
    "address",
    "id",
    "ids",
    "name",
    "names",
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "dir",
    "directory",
    "folder",
    "url",
    "uri",
    "domain",
    "port",
    "user",
    "username",
    "branch",
    "email",
    "target",
];

/// Words in an argument name or description for code or prose.
const CODE_OR_PROSE_WORDS: [&str; 50] = [
    "code",
    "command",
    "commands",
    "cmd",
    "query",
    "queries",
    "content",
    "contents",
    "text",
    "texts",
    "body",
    "script",
    "scripts",
    "message",
    "messages",
    "sql",
    "shell",
    "bash",
    "expression",
    "expr",
    "template",
    "regex",
    "pattern",
    "markdown",
    "html",
    "prompt",
    "prompts",
    "comment",
    "comments",
    "description",
    "summary",
    "title",
    "subject",
    "note",
    "notes",
    "source",
    "diff",
    "patch",
    "data",
    "payload",
    "input",
    "args",
    "arguments",
    "snippet",
    "caption",
    "document",
    "documents",
    "program",
    "formula",
    "question",
];

/// The declared arguments of a tool.
#[derive(Debug)]
pub(super) struct ToolParameters {
    /// Declared names; `None` if the schema explicitly allows or forbids others.
    declared: Option<Vec<Box<str>>>,
    /// Names of arguments with a description of code or prose.
    described_as_code: Vec<Box<str>>,
    /// All names in the schema, at any level, that are short enough for a name.
    known_names: HashSet<Box<str>>,
}

impl ToolParameters {
    /// Reads the schema of a tool. If a name occurs twice in an object, readers of the schema differ:
    /// all declared names count, and no description does.
    pub(super) fn from_schema(schema: &RawValue) -> Self {
        let schema = schema.get();
        let lists = skim::members(schema).filter(|(key, _)| skim::decode_key(key) == "properties");
        let names: Vec<Box<str>> = lists
            .flat_map(|(_, properties)| skim::members(properties))
            .map(|(name, _)| skim::decode_key(name).into())
            .collect();
        let properties = skim::member(schema, "properties").unwrap_or("{}");
        let property: Map<String, Value> = if skim::has_duplicate_key(schema) {
            Map::new()
        } else {
            serde_json::from_str(properties).unwrap_or_default()
        };
        // These keywords may declare further names.
        let open = [
            "additionalProperties",
            "patternProperties",
            "unevaluatedProperties",
            "$ref",
            "allOf",
            "anyOf",
            "oneOf",
            "if",
            "dependentSchemas",
        ];
        let closed =
            !names.is_empty() && !open.iter().any(|name| skim::member(schema, name).is_some());
        let mut known_names = HashSet::new();
        collect_names(&property, &mut known_names);
        let described_as_code = property
            .iter()
            .filter_map(|(name, property)| {
                let text = property.get("description")?.as_str()?;
                split_words(text)
                    .any(|word| CODE_OR_PROSE_WORDS.contains(&&*word))
                    .then(|| name.as_str().into())
            })
            .collect();
        Self { declared: closed.then_some(names), described_as_code, known_names }
    }

    /// Returns whether an argument is undeclared; false if the schema allows or forbids others.
    pub(super) fn has_undeclared(&self, arguments: &Value) -> bool {
        let Some((declared, members)) = self.declared.as_ref().zip(arguments.as_object()) else {
            return false;
        };
        members.keys().any(|name| !declared.iter().any(|parameter| **parameter == **name))
    }

    /// Returns whether the schema contains this name, so that findings may show it.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.known_names.contains(name)
    }

    /// Returns whether the names on the path of a value indicate code or prose.
    pub(super) fn is_code_or_prose(&self, segments: &[PathSegment<'_>]) -> bool {
        // The innermost name with an indication decides.
        for segment in segment_names(segments).rev() {
            let words: Vec<String> = split_words(segment).collect();
            if words.iter().any(|word| CODE_OR_PROSE_WORDS.contains(&&**word)) {
                return true;
            }
            if words.iter().any(|word| IDENTIFIER_WORDS.contains(&&**word)) {
                return false;
            }
        }
        segment_names(segments)
            .next()
            .is_some_and(|name| self.described_as_code.iter().any(|described| **described == *name))
    }
}

/// Collects the names of properties at all levels.
fn collect_names(properties: &Map<String, Value>, collected: &mut HashSet<Box<str>>) {
    for (name, property) in properties {
        if name.len() <= MAX_NAME_LEN
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        {
            collected.insert(name.as_str().into());
        }
        let mut inner = property;
        // In nested lists, the innermost schema has the names.
        while let Some(items) = inner.get("items") {
            inner = items;
        }
        if let Some(Value::Object(properties)) = inner.get("properties") {
            collect_names(properties, collected);
        }
    }
}

/// Splits a name or sentence into lower-case words: `filePath` has two.
pub(super) fn split_words(text: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for character in text.chars() {
        let begins = character.is_uppercase() && small;
        small = character.is_lowercase() || character.is_ascii_digit();
        if !character.is_alphanumeric() || begins {
            words.push(String::new());
        }
        if character.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(character.to_lowercase());
        }
    }
    words.into_iter().filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn tool_parameters(schema: &Value) -> ToolParameters {
        ToolParameters::from_schema(&to_raw_value(schema).unwrap())
    }

    #[test]
    fn an_argument_is_undeclared_where_the_schema_lists_others_and_says_nothing_more() {
        let arguments = json!({"a": 1, "b": 2});
        let schema = json!({"properties": {"a": {}}});
        assert!(tool_parameters(&schema).has_undeclared(&arguments));
        assert!(!tool_parameters(&schema).has_undeclared(&json!({"a": 1})));
        for open in [
            json!({}),
            json!({"properties": {}}),
            json!({"properties": {"a": {}}, "additionalProperties": true}),
            json!({"properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}}]}),
        ] {
            assert!(!tool_parameters(&open).has_undeclared(&arguments), "{open}");
        }
    }

    #[test]
    fn names_then_descriptions_say_what_is_code_or_prose() {
        let schema = json!({"properties": {
            "host": {"description": "the host that the command asks"},
            "x": {"description": "A shell command"}, "y": {"description": "How often"},
        }});
        let parameters = tool_parameters(&schema);
        for (names, expected) in [
            ("host", false),
            ("x", true),
            ("y", false),
            ("sqlQuery", true),
            ("file_path", false),
            ("message text", true),
            ("content 0 path", false),
            ("files 0 content", true),
        ] {
            let name = |name: &str| PathSegment::Name(name.to_owned().into());
            let segments: Vec<PathSegment<'_>> = names.split(' ').map(name).collect();
            assert_eq!(parameters.is_code_or_prose(&segments), expected, "{names}");
        }
    }

    /// Attack: data | a schema has two members of one name, of which the last describes an argument as
    /// code | the description does not relax the scan, and the names of both are declared
    /// | Complete checks
    #[test]
    fn no_description_counts_in_a_schema_with_two_members_of_one_name() {
        let parse = |text: &str| {
            ToolParameters::from_schema(&RawValue::from_string(text.to_owned()).unwrap())
        };
        let code = r#"{"description":"A shell command"}"#;
        let x = [PathSegment::Name("x".into())];
        assert!(parse(&format!(r#"{{"properties":{{"x":{code}}}}}"#)).is_code_or_prose(&x));
        for schema in [
            format!(r#"{{"properties":{{"x":{{}}}},"properties":{{"x":{code}}}}}"#),
            format!(r#"{{"properties":{{"x":{{}},"\u0078":{code}}}}}"#),
            r#"{"properties":{"x":{"description":"a","description":"A shell command"}}}"#.into(),
        ] {
            let parameters = parse(&schema);
            assert!(!parameters.is_code_or_prose(&x), "{schema}");
            assert!(!parameters.declares("x"), "{schema}");
        }
        let both = parse(r#"{"properties":{"a":{}},"\u0070roperties":{"b":{}}}"#);
        assert!(!both.has_undeclared(&json!({"a": 1, "b": 2})));
        assert!(both.has_undeclared(&json!({"c": 3})));
    }

    #[test]
    fn names_that_a_schema_lists_on_any_level_may_be_shown_and_sentences_not() {
        let inner = json!({"items": {"items": {"properties": {"b": {}}}}});
        let long = |length: usize| "x".repeat(length);
        let parameters = tool_parameters(&json!({"properties": {
            "a": inner, "send it now": {}, long(MAX_NAME_LEN): {}, long(MAX_NAME_LEN + 1): {}
        }}));
        assert!(["a", "b", &long(MAX_NAME_LEN)].iter().all(|name| parameters.declares(name)));
        let not = ["c", "items", "send it now", &long(MAX_NAME_LEN + 1)];
        assert!(!not.iter().any(|name| parameters.declares(name)));
    }
}
