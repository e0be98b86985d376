//! What a tool's schema says of its arguments: which it declares, and which of them are code or prose.

use std::collections::HashSet;

use innkeeper_protocol::skim;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::pieces::{Step, names};

/// The longest name that is told: a longer one is a sentence.
const LONGEST_NAME: usize = 64;

/// Words in the name of an argument that say it names something: no code, whatever else is said.
const NAMING: [&str; 26] = [
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

/// Words in the name or the description of an argument that say it is code or prose.
const SAYING: [&str; 50] = [
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

/// The arguments of one tool.
#[derive(Debug)]
pub(super) struct Parameters {
    /// The names that are declared, where others are neither allowed nor forbidden.
    declared: Option<Vec<Box<str>>>,
    /// The names of those whose description says that they are code or prose.
    described: Vec<Box<str>>,
    /// Every name that the schema lists, on any level, and that is a name and no sentence.
    known: HashSet<Box<str>>,
}

impl Parameters {
    pub(super) fn of(schema: &RawValue) -> Self {
        let schema = schema.get();
        let has = |name: &str| skim::member(schema, name).is_some();
        let properties = skim::member(schema, "properties").unwrap_or("{}");
        let property: Map<String, Value> = serde_json::from_str(properties).unwrap_or_default();
        // These may declare further ones.
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
        let closed = !property.is_empty() && !open.iter().any(|name| has(name));
        let names = || property.keys().map(|name| name.as_str().into());
        let mut known = HashSet::new();
        list(&property, &mut known);
        let says = |(name, property): (&String, &Value)| {
            let text = property.get("description")?.as_str()?;
            words(text).any(|word| SAYING.contains(&&*word)).then(|| name.as_str().into())
        };
        let described = property.iter().filter_map(says).collect();
        Self { declared: closed.then(|| names().collect()), described, known }
    }

    /// Whether there is an argument that is not declared, where that says something.
    pub(super) fn has_undeclared(&self, arguments: &Value) -> bool {
        let Some((declared, given)) = self.declared.as_ref().zip(arguments.as_object()) else {
            return false;
        };
        given.keys().any(|name| !declared.iter().any(|known| **known == **name))
    }

    /// Whether the schema lists this name, which may then be told.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.known.contains(name)
    }

    /// Whether the value at the end of these steps is code or prose by what it is called.
    pub(super) fn says(&self, steps: &[Step<'_>]) -> bool {
        // The innermost name that says anything decides.
        for step in names(steps).rev() {
            let words: Vec<String> = words(step).collect();
            if words.iter().any(|word| SAYING.contains(&&**word)) {
                return true;
            }
            if words.iter().any(|word| NAMING.contains(&&**word)) {
                return false;
            }
        }
        names(steps).next().is_some_and(|name| self.described.iter().any(|known| **known == *name))
    }
}

/// Adds the names of properties and of what is in them.
fn list(properties: &Map<String, Value>, known: &mut HashSet<Box<str>>) {
    let is_sign = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    for (name, property) in properties {
        if name.len() <= LONGEST_NAME && name.chars().all(is_sign) {
            known.insert(name.as_str().into());
        }
        let mut inner = property;
        // A list of lists has its names in the innermost.
        while let Some(items) = inner.get("items") {
            inner = items;
        }
        if let Some(Value::Object(properties)) = inner.get("properties") {
            list(properties, known);
        }
    }
}

/// The words of a name or sentence, in small letters: `filePath` is two.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
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

    fn of(schema: &Value) -> Parameters {
        Parameters::of(&to_raw_value(schema).unwrap())
    }

    #[test]
    fn an_argument_is_undeclared_where_the_schema_lists_others_and_says_nothing_more() {
        let given = json!({"a": 1, "b": 2});
        let listed = json!({"properties": {"a": {}}});
        assert!(of(&listed).has_undeclared(&given));
        assert!(!of(&listed).has_undeclared(&json!({"a": 1})));
        for open in [
            json!({}),
            json!({"properties": {}}),
            json!({"properties": {"a": {}}, "additionalProperties": true}),
            json!({"properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}}]}),
        ] {
            assert!(!of(&open).has_undeclared(&given), "{open}");
        }
    }

    #[test]
    fn names_then_descriptions_say_what_is_code_or_prose() {
        let schema = json!({"properties": {
            "host": {"description": "the host that the command asks"},
            "x": {"description": "A shell command"}, "y": {"description": "How often"},
        }});
        let parameters = of(&schema);
        for (names, says) in [
            ("host", false),
            ("x", true),
            ("y", false),
            ("sqlQuery", true),
            ("file_path", false),
            ("message text", true),
            ("content 0 path", false),
            ("files 0 content", true),
        ] {
            let steps: Vec<Step<'_>> = names.split(' ').map(Step::Name).collect();
            assert_eq!(parameters.says(&steps), says, "{names}");
        }
    }

    #[test]
    fn names_that_a_schema_lists_on_any_level_may_be_told_and_sentences_not() {
        let inner = json!({"items": {"items": {"properties": {"b": {}}}}});
        let long = |length: usize| "x".repeat(length);
        let parameters = of(&json!({"properties": {
            "a": inner, "send it now": {}, long(LONGEST_NAME): {}, long(LONGEST_NAME + 1): {}
        }}));
        assert!(["a", "b", &long(LONGEST_NAME)].iter().all(|name| parameters.declares(name)));
        let not = ["c", "items", "send it now", &long(LONGEST_NAME + 1)];
        assert!(!not.iter().any(|name| parameters.declares(name)));
    }
}
