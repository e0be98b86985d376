//! What a tool's schema says of its arguments: which it declares, and which of them are code or prose.

use innkeeper_protocol::skim;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

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
        let says = |(name, property): (&String, &Value)| {
            let text = property.get("description")?.as_str()?;
            words(text).any(|word| SAYING.contains(&&*word)).then(|| name.as_str().into())
        };
        let described = property.iter().filter_map(says).collect();
        Self { declared: closed.then(|| names().collect()), described }
    }

    /// The first argument that is not declared, if that says something.
    pub(super) fn undeclared<'a>(&self, arguments: &'a Value) -> Option<&'a str> {
        let declared = self.declared.as_ref()?;
        let mut given = arguments.as_object()?.keys();
        given.find(|name| !declared.iter().any(|known| **known == ***name)).map(String::as_str)
    }

    /// Whether the value at this pointer is code or prose by what it is called.
    pub(super) fn says(&self, pointer: &str) -> bool {
        let steps = || pointer.split('/').skip(1).filter(|step| step.parse::<usize>().is_err());
        // The innermost name that says anything decides.
        for step in steps().collect::<Vec<_>>().into_iter().rev() {
            let words: Vec<String> = words(step).collect();
            if words.iter().any(|word| SAYING.contains(&&**word)) {
                return true;
            }
            if words.iter().any(|word| NAMING.contains(&&**word)) {
                return false;
            }
        }
        steps().next().is_some_and(|name| self.described.iter().any(|known| **known == *name))
    }
}

/// The words of a name or sentence, in small letters: `filePath` is two.
fn words(text: &str) -> impl Iterator<Item = String> {
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
        assert_eq!(of(&listed).undeclared(&given), Some("b"));
        assert_eq!(of(&listed).undeclared(&json!({"a": 1})), None);
        for open in [
            json!({}),
            json!({"properties": {}}),
            json!({"properties": {"a": {}}, "additionalProperties": true}),
            json!({"properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}}]}),
        ] {
            assert_eq!(of(&open).undeclared(&given), None, "{open}");
        }
    }

    #[test]
    fn names_then_descriptions_say_what_is_code_or_prose() {
        let schema = json!({"properties": {
            "host": {"description": "the host that the command asks"},
            "x": {"description": "A shell command"}, "y": {"description": "How often"},
        }});
        let parameters = of(&schema);
        for (pointer, says) in [
            ("/host", false),
            ("/x", true),
            ("/y", false),
            ("/sqlQuery", true),
            ("/file_path", false),
            ("/message/text", true),
            ("/content/0/path", false),
            ("/files/0/content", true),
        ] {
            assert_eq!(parameters.says(pointer), says, "{pointer}");
        }
    }
}
