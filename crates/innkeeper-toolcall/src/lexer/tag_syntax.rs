//! The tags of the call syntaxes that write values as raw text.

/// The tags of one call syntax.
#[derive(Debug)]
pub(super) struct TagSyntax {
    pub(super) call: CallTags,
    pub(super) argument: ArgumentTags,
    /// The starts of other elements with the closing tags of a call and of an argument. Empty if the
    /// syntax writes its own tags this way.
    pub(super) element_starts: &'static [&'static str],
    pub(super) type_source: TypeSource,
}

/// The tags around a call.
#[derive(Debug)]
pub(super) struct CallTags {
    /// The text between the marker and the tool name.
    pub(super) prefix: &'static str,
    /// The start of a call, up to its name, as an example in a value shows it.
    pub(super) start: String,
    /// The end of the text with the tool name.
    pub(super) head_end: HeadEnd,
    pub(super) end: String,
    /// The closing tag of an optional outer element.
    pub(super) outer_end: Option<&'static str>,
    /// The closing tags that may follow a call at the end of the text.
    pub(super) section_ends: Vec<String>,
}

#[derive(Debug)]
pub(super) struct ArgumentTags {
    pub(super) start: String,
    /// The end of the key and the start of the value.
    pub(super) key_end: &'static str,
    pub(super) value_start: &'static str,
    pub(super) value_end: ValueEnd,
    /// Whether one line end at each side of a value belongs to the tags.
    pub(super) trims_newlines: bool,
}

impl ArgumentTags {
    /// Returns the tag that ends the value of an argument.
    pub(super) fn value_end(&self, key: &str) -> String {
        match &self.value_end {
            ValueEnd::Tag(tag) => tag.clone(),
            ValueEnd::Named(start) => format!("{start}{key}>"),
        }
    }
}

/// The end of the tool name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadEnd {
    /// This text.
    Text(&'static str),
    /// `>` or `/>`, after a name in any quotes or in none.
    TagEnd,
    /// The first argument, the end of the call, or this separator.
    NextTag { separator: &'static str },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValueEnd {
    /// The same tag for every argument.
    Tag(String),
    /// This text, then the key and `>`.
    Named(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TypeSource {
    /// The schema of the tool.
    Schema,
    /// `name="…" string="true|false"`; the schema if the attribute `string` is missing.
    StringAttribute,
    /// `key="…" type="…"`.
    TypeAttribute,
}

/// The text before every tag of MiniMax M3.
macro_rules! minimax {
    ($tag:literal) => {
        concat!("]<]minimax[>[", $tag)
    };
}

impl TagSyntax {
    /// `<function=name>` with `<parameter=key>`.
    pub(super) fn function() -> Self {
        Self {
            call: CallTags {
                prefix: "",
                start: "<function=".to_owned(),
                head_end: HeadEnd::Text(">"),
                end: "</function>".to_owned(),
                outer_end: Some("</tool_call>"),
                section_ends: vec!["</tool_call>".to_owned(), "</seed:tool_call>".to_owned()],
            },
            argument: ArgumentTags {
                start: "<parameter=".to_owned(),
                key_end: ">",
                value_start: "",
                value_end: ValueEnd::Tag("</parameter>".to_owned()),
                trims_newlines: true,
            },
            element_starts: &["<function", "<parameter"],
            type_source: TypeSource::Schema,
        }
    }

    /// `<function name="…">` with `<param name="…">` (MiniCPM).
    pub(super) fn named_function() -> Self {
        let Self { call, argument, .. } = Self::function();
        Self {
            call: CallTags {
                start: "<function name=".to_owned(),
                head_end: HeadEnd::TagEnd,
                section_ends: vec!["</tool_call>".to_owned()],
                ..call
            },
            argument: ArgumentTags {
                start: "<param name=".to_owned(),
                value_end: ValueEnd::Tag("</param>".to_owned()),
                trims_newlines: false,
                ..argument
            },
            element_starts: &[],
            type_source: TypeSource::StringAttribute,
        }
    }

    /// GLM, and Hunyuan 3 without its suffix: the name, then `<arg_key>` and `<arg_value>`.
    pub(super) fn glm() -> Self {
        Self {
            call: CallTags {
                prefix: "",
                start: "<tool_call>".to_owned(),
                head_end: HeadEnd::NextTag { separator: "<tool_sep>" },
                end: "</tool_call>".to_owned(),
                outer_end: None,
                section_ends: vec!["</tool_calls>".to_owned()],
            },
            argument: ArgumentTags {
                start: "<arg_key>".to_owned(),
                key_end: "</arg_key>",
                value_start: "<arg_value>",
                value_end: ValueEnd::Tag("</arg_value>".to_owned()),
                trims_newlines: false,
            },
            element_starts: &[],
            type_source: TypeSource::Schema,
        }
    }

    /// Hunyuan 3: GLM's tags with a suffix.
    pub(super) fn hunyuan() -> Self {
        let Self { call, argument, element_starts, type_source } = Self::glm();
        Self {
            call: CallTags {
                start: "<tool_call:opensource>".to_owned(),
                head_end: HeadEnd::NextTag { separator: "<tool_sep:opensource>" },
                end: "</tool_call:opensource>".to_owned(),
                section_ends: vec!["</tool_calls:opensource>".to_owned()],
                ..call
            },
            argument: ArgumentTags {
                start: "<arg_key:opensource>".to_owned(),
                key_end: "</arg_key:opensource>",
                value_start: "<arg_value:opensource>",
                value_end: ValueEnd::Tag("</arg_value:opensource>".to_owned()),
                ..argument
            },
            element_starts,
            type_source,
        }
    }

    /// `<invoke name="…">`, with `prefix` after the `<` or `</` of each tag.
    pub(super) fn invoke(prefix: &'static str) -> Self {
        Self {
            call: CallTags {
                prefix: "",
                start: format!("<{prefix}invoke name="),
                head_end: HeadEnd::TagEnd,
                end: format!("</{prefix}invoke>"),
                outer_end: None,
                section_ends: SECTION_ENDS.iter().map(|end| (*end).to_owned()).collect(),
            },
            argument: ArgumentTags {
                start: format!("<{prefix}parameter name="),
                key_end: ">",
                value_start: "",
                value_end: ValueEnd::Tag(format!("</{prefix}parameter>")),
                trims_newlines: false,
            },
            element_starts: &[],
            type_source: TypeSource::StringAttribute,
        }
    }

    /// MiniMax M3: each argument has a tag with its own name.
    pub(super) fn minimax() -> Self {
        Self {
            call: CallTags {
                prefix: "",
                start: minimax!("<invoke name=").to_owned(),
                head_end: HeadEnd::TagEnd,
                end: minimax!("</invoke>").to_owned(),
                outer_end: None,
                section_ends: vec![minimax!("</tool_call>").to_owned()],
            },
            argument: ArgumentTags {
                start: minimax!("<").to_owned(),
                key_end: ">",
                value_start: "",
                value_end: ValueEnd::Named(minimax!("</")),
                trims_newlines: false,
            },
            element_starts: &[],
            type_source: TypeSource::Schema,
        }
    }

    /// Kimi K3.
    pub(super) fn xtml() -> Self {
        Self {
            call: CallTags {
                prefix: "",
                start: "<|open|>call ".to_owned(),
                head_end: HeadEnd::Text("<|sep|>"),
                end: "<|close|>call<|sep|>".to_owned(),
                outer_end: None,
                section_ends: vec![
                    "<|close|>tools<|sep|>".to_owned(),
                    "<|close|>message<|sep|>".to_owned(),
                ],
            },
            argument: ArgumentTags {
                start: "<|open|>argument ".to_owned(),
                key_end: "<|sep|>",
                value_start: "",
                value_end: ValueEnd::Tag("<|close|>argument<|sep|>".to_owned()),
                trims_newlines: false,
            },
            element_starts: &[],
            type_source: TypeSource::TypeAttribute,
        }
    }

    /// The first byte of every tag.
    pub(super) fn tag_byte(&self) -> u8 {
        self.argument.start.as_bytes()[0]
    }

    /// Returns the name of the tool. `head` is the text before the end of the name.
    pub(super) fn name(&self, head: &str) -> String {
        match self.type_source {
            TypeSource::TypeAttribute => attribute_value(head, "tool").unwrap_or_default(),
            TypeSource::Schema | TypeSource::StringAttribute => {
                let head = head.trim();
                if self.call.head_end == HeadEnd::TagEnd {
                    split_quoted(head).0
                } else {
                    head.trim_matches('"')
                }
                .to_owned()
            }
        }
    }

    /// Whether the text before the end of the name has no other attributes, if it must have none.
    pub(super) fn is_head(&self, head: &str) -> bool {
        self.call.head_end != HeadEnd::TagEnd || split_quoted(head.trim()).1.trim().is_empty()
    }

    /// Returns the name of an argument and its declared type. `head` is the text of the tag.
    pub(super) fn parse_argument_key(&self, head: &str) -> (String, Option<String>) {
        match self.type_source {
            TypeSource::Schema => (head.trim().trim_matches('"').to_owned(), None),
            TypeSource::StringAttribute => {
                let (name, rest) = split_quoted(head.trim());
                (name.to_owned(), attribute_value(rest, "string"))
            }
            TypeSource::TypeAttribute => {
                let kind = attribute_value(head, "type").unwrap_or_else(|| "string".to_owned());
                (attribute_value(head, "key").unwrap_or_default(), Some(kind))
            }
        }
    }
}

/// The ends of the sections that contain `<invoke>`.
const SECTION_ENDS: &[&str] = &[
    "</｜DSML｜function_calls>",
    "</｜DSML｜tool_calls>",
    "</｜DSML｜ calls>",
    "</|DSML|function_calls>",
    "</|DSML|tool_calls>",
    "</｜GCML｜tool_calls>",
    "</｜｜DSML｜｜function_calls>",
    "</｜｜DSML｜｜tool_calls>",
    "</function_calls>",
    "</minimax:tool_call>",
    "</steptml:toolcall>",
    "<｜tool_call_end｜>",
    "<｜tool_calls_end｜>",
];

/// Splits the text after `name=` into the name, in any quotes or in none, and the other attributes.
fn split_quoted(text: &str) -> (&str, &str) {
    match text.strip_prefix(QUOTES) {
        Some(rest) => rest.split_once(QUOTES).unwrap_or((rest, "")),
        None => text.split_once(' ').unwrap_or((text, "")),
    }
}

const QUOTES: [char; 2] = ['"', '\''];

/// Returns the value of the attribute `name`, with entities decoded.
fn attribute_value(text: &str, name: &str) -> Option<String> {
    let from = text.find(&format!("{name}="))? + name.len() + 1;
    let quote = text[from..].chars().next().filter(|quote| QUOTES.contains(quote))?;
    let value = text[from + 1..].split(quote).next()?;
    Some(
        value
            .replace("&quot;", "\"")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&"),
    )
}
