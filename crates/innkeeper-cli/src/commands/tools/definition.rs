//! Text of the definition of a tool or a prompt: signature, parameters and the line that uses it.

use innkeeper_protocol::view::{Prompt, Tool, ToolAnnotations};
use serde_json::Value;

use crate::output::{Output, Style, display_width, escape_block, escape_inline, wrap};
use crate::tool_arguments::{Parameter, type_text};

/// Maximum width of the column with names and types; a longer name and type has its own line.
const MAX_HEAD_WIDTH: usize = 28;

/// Indentation below a signature.
const INDENT: &str = "  ";

/// Writes definitions of one server for people.
pub(in crate::commands) struct DefinitionWriter<'a> {
    pub(in crate::commands) output: &'a Output,
    /// The program with the options that find the server, as a user types them.
    pub(in crate::commands) program: &'a str,
    pub(in crate::commands) server: &'a str,
}

impl DefinitionWriter<'_> {
    pub(in crate::commands) fn tool(&self, tool: &Tool) -> String {
        let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
        let parameters = Parameter::all(&schema);
        let mut text = self.signature(&tool.name, tool.description.as_deref(), &parameters);
        let mut notes = Vec::new();
        let output_schema = tool.output_schema.as_ref();
        if let Some(schema) =
            output_schema.and_then(|schema| serde_json::from_str::<Value>(schema.get()).ok())
        {
            notes.push(format!("returns {}", type_text(&schema, &schema)));
        }
        let hints = hint_names(&tool.annotations);
        if !hints.is_empty() {
            notes.push(format!("hints: {}", hints.join(", ")));
        }
        if !notes.is_empty() {
            text.push('\n');
        }
        for note in notes {
            text.push_str(&self.wrap(&escape_inline(&note), INDENT, "    "));
        }
        text.push_str(&self.command_line("call", &tool.name, &parameters));
        text
    }

    pub(in crate::commands) fn prompt(&self, prompt: &Prompt) -> String {
        let parameters: Vec<Parameter> = prompt
            .arguments
            .iter()
            .map(|argument| Parameter {
                name: argument.name.clone(),
                type_text: "string".to_owned(),
                is_required: argument.required,
                default: None,
                description: argument.description.clone(),
            })
            .collect();
        let signature = self.signature(&prompt.name, prompt.description.as_deref(), &parameters);
        let mut text = format!("prompt {signature}");
        text.push_str(&self.command_line("prompt", &prompt.name, &parameters));
        text
    }

    fn signature(&self, name: &str, description: Option<&str>, all: &[Parameter]) -> String {
        let names: Vec<String> = all.iter().map(name_with_mark).collect();
        let name = self.output.paint(Style::Strong, &escape_inline(&self.public_name(name)));
        let signature = format!("{name}({})", escape_inline(&names.join(", ")));
        let mut text = self.wrap(&signature, "", "    ");
        if let Some(description) = description.map(str::trim).filter(|text| !text.is_empty()) {
            text.push_str(&self.wrap(&escape_block(description), INDENT, INDENT));
        }
        if !all.is_empty() {
            text.push('\n');
            text.push_str(&self.parameters(all));
        }
        text
    }

    /// Returns one line per parameter, with aligned descriptions.
    fn parameters(&self, all: &[Parameter]) -> String {
        let heads: Vec<String> = all.iter().map(parameter_head).collect();
        let fitting =
            heads.iter().map(|head| display_width(head)).filter(|width| *width <= MAX_HEAD_WIDTH);
        let column = fitting.max().unwrap_or(0);
        let below = format!("{INDENT}{}  ", " ".repeat(column));
        let mut text = String::new();
        for (parameter, head) in all.iter().zip(&heads) {
            let description = parameter.description.as_deref().map(one_line).unwrap_or_default();
            let padding = column.checked_sub(display_width(head));
            let painted = match head.split_once(':') {
                Some((name, rest)) => format!("{}:{rest}", self.output.paint(Style::Strong, name)),
                None => head.clone(),
            };
            match padding {
                Some(padding) if !description.is_empty() => {
                    let first = format!("{INDENT}{painted}{}  ", " ".repeat(padding));
                    text.push_str(&self.wrap(&description, &first, &below));
                }
                _ => {
                    text.push_str(&self.wrap(&painted, INDENT, "      "));
                    if !description.is_empty() {
                        text.push_str(&self.wrap(&description, &below, &below));
                    }
                }
            }
        }
        text
    }

    /// Returns the line that uses the item, with the required arguments as placeholders. The line
    /// is not wrapped, so that a user can copy the line.
    fn command_line(&self, command: &str, name: &str, all: &[Parameter]) -> String {
        let required = all.iter().filter(|parameter| parameter.is_required);
        let names: Vec<&str> = required.map(|parameter| parameter.name.as_str()).collect();
        let mut words = vec![command.to_owned(), self.public_name(name)];
        words.extend(placeholder_arguments(&names));
        let line = format!("{} {}", self.program, shell_words(&words));
        format!("\n{INDENT}{}\n", self.output.paint(Style::Hint, &escape_inline(&line)))
    }

    fn public_name(&self, name: &str) -> String {
        format!("{}.{name}", self.server)
    }

    fn wrap(&self, text: &str, first: &str, rest: &str) -> String {
        format!("{}\n", wrap(text, self.output.columns(), first, rest))
    }
}

pub(in crate::commands) fn shell_words<S: AsRef<str>>(words: &[S]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quote_argument(word.as_ref())).collect();
    quoted.join(" ")
}

/// Quotes a word; one with a NUL character, which no shell can pass, stays as it is.
fn quote(text: &str) -> String {
    shlex::try_quote(text).map_or_else(|_| text.to_owned(), |quoted| quoted.into_owned())
}

/// Quotes an argument. `=` needs no quotes, because an argument is no assignment.
fn quote_argument(word: &str) -> String {
    let without_sign = word.replacen('=', "", 1);
    if word.starts_with('=') || quote(&without_sign) != without_sign {
        return quote(word);
    }
    word.to_owned()
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains('=') && !name.ends_with(':') && !name.starts_with(['-', '{'])
}

/// Returns `KEY=PLACEHOLDER` for each name, or one JSON object if a name cannot be written so.
fn placeholder_arguments(names: &[&str]) -> Vec<String> {
    if names.iter().all(|name| is_plain(name)) {
        return names.iter().map(|name| format!("{name}={}", placeholder(name))).collect();
    }
    let members = names.iter().map(|name| ((*name).to_owned(), Value::from(placeholder(name))));
    vec![Value::Object(members.collect()).to_string()]
}

/// Returns the name in capitals, such as `FILE_NAME` for `fileName`.
fn placeholder(name: &str) -> String {
    let mut text = String::new();
    let mut follows_lower_case = false;
    for c in name.chars() {
        if c.is_uppercase() && follows_lower_case {
            text.push('_');
        }
        follows_lower_case = c.is_lowercase() || c.is_numeric();
        if c.is_alphanumeric() { text.extend(c.to_uppercase()) } else { text.push('_') }
    }
    text
}

fn name_with_mark(parameter: &Parameter) -> String {
    let mark = if parameter.is_required { "" } else { "?" };
    format!("{}{mark}", parameter.name)
}

/// Returns `name: type`, with `?` after an optional name, and the default.
fn parameter_head(parameter: &Parameter) -> String {
    let mut head = format!("{}: {}", name_with_mark(parameter), parameter.type_text);
    if let Some(default) = &parameter.default {
        head.push_str(&format!(" = {default}"));
    }
    escape_inline(&head).into_owned()
}

pub(super) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    escape_inline(&words.join(" ")).into_owned()
}

/// Returns the hints of a server about the behaviour of a tool.
fn hint_names(annotations: &ToolAnnotations) -> Vec<&'static str> {
    let ToolAnnotations { read_only_hint, destructive_hint, idempotent_hint, .. } = annotations;
    let is_writing = *read_only_hint != Some(true);
    [
        (!is_writing, "read-only"),
        (is_writing && *destructive_hint == Some(true), "destructive"),
        (is_writing && *destructive_hint == Some(false), "not destructive"),
        (is_writing && *idempotent_hint == Some(true), "idempotent"),
    ]
    .into_iter()
    .filter_map(|(applies, name)| applies.then_some(name))
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::output::capture::captured_output;

    fn text_of(definition: &Value, on_terminal: bool) -> String {
        let tool = Tool::from_raw(&to_raw_value(definition).unwrap()).unwrap();
        let (output, ..) = captured_output(false, on_terminal);
        DefinitionWriter { output: &output, program: "innkeeper", server: "one" }.tool(&tool)
    }

    fn search() -> Value {
        json!({
            "name": "search",
            "description": "Finds text.\n\nThe search reads every file below the directory, \
                            including the files of its subdirectories.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "The text to find, as it stands."},
                    "maxResults": {"type": "integer", "default": 10},
                    "mode": {
                        "enum": ["exact", "fuzzy", "regular expression"],
                        "description": "How the text is compared with the text of a file."
                    },
                    "root dir": {"type": "string"}
                },
                "required": ["query", "root dir"]
            },
            "outputSchema": {"type": "object", "properties": {"lines": {"type": "array"}}},
            "annotations": {"readOnlyHint": true}
        })
    }

    #[test]
    fn a_definition_has_a_signature_parameters_and_a_line_to_copy() {
        insta::assert_snapshot!(text_of(&search(), false));
    }

    #[test]
    fn on_a_terminal_a_definition_is_wrapped_and_has_styles() {
        let text = text_of(&search(), true);
        assert!(text.starts_with("\u{1b}[1mone.search\u{1b}[0m("), "{text}");
        assert!(text.lines().all(|line| display_width(line) <= 80), "{text}");
        insta::assert_snapshot!(text.replace('\u{1b}', "␛"));
    }

    /// Attack: terminal | each text of a tool definition contains escape codes | the output
    /// contains no such character | Foreign text stays text
    #[test]
    fn escape_codes_of_a_server_are_shown_and_not_obeyed() {
        let text = text_of(
            &json!({
                "name": "a\u{1b}[2J",
                "description": "\u{1b}[2Jb\r\nc",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "\u{1b}[2J": {"type": "\u{1b}[2J", "default": "\u{202e}", "description": "\u{9b}"}
                    },
                    "required": ["\u{1b}[2J"]
                },
            }),
            false,
        );
        assert!(!text.contains(innkeeper_host::is_deceptive_char), "{text:?}");
    }

    #[test]
    fn names_that_are_no_keys_of_pairs_are_members_of_an_object() {
        assert_eq!(placeholder_arguments(&["a", "fileName"]), ["a=A", "fileName=FILE_NAME"]);
        assert_eq!(placeholder_arguments(&["a=b", "c"]), [r#"{"a=b":"A_B","c":"C"}"#]);
        assert_eq!(shell_words(&["call", "a b", "x='"]), "call 'a b' \"x='\"");
    }
}
