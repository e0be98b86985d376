//! The variables of a resource template (RFC 6570) that a person types one after the other.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart<'t> {
    Literal(&'t str),
    /// A variable; `{+name}` may contain reserved characters, such as `/`.
    Variable {
        name: &'t str,
        is_reserved: bool,
    },
    /// An expression of another form, such as `{?a,b}`: nothing completes it.
    Other,
}

/// The variable at the end of a typed URI.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TypedVariable<'t> {
    pub(super) name: &'t str,
    /// What is typed of the value, decoded.
    pub(super) value: String,
    /// The variables before, with their values.
    pub(super) context: Map<String, Value>,
    /// The typed URI before the value.
    before: String,
    is_reserved: bool,
    /// The literal behind the variable.
    after: &'t str,
}

impl TypedVariable<'_> {
    /// Returns the URI with a value, up to the next variable.
    pub(super) fn uri_with(&self, value: &str) -> String {
        format!("{}{}{}", self.before, encode(value, self.is_reserved), self.after)
    }
}

/// Returns the text of a template before its first variable.
pub(super) fn start_of(template: &str) -> &str {
    template.split('{').next().unwrap_or_default()
}

/// Returns the variable of a template whose value the end of a URI is; `None` if the URI does not
/// belong to the template, or the template starts with a variable.
pub(super) fn typed_variable<'t>(template: &'t str, uri: &str) -> Option<TypedVariable<'t>> {
    let parts = parse(template);
    let mut context = Map::new();
    let mut rest = uri;
    for (at, part) in parts.iter().enumerate() {
        match *part {
            TemplatePart::Literal(literal) => rest = rest.strip_prefix(literal)?,
            TemplatePart::Variable { .. } if at == 0 => return None,
            TemplatePart::Variable { name, is_reserved } => {
                let after = match parts.get(at + 1) {
                    Some(TemplatePart::Literal(literal)) => *literal,
                    Some(TemplatePart::Variable { .. } | TemplatePart::Other) | None => "",
                };
                let end = if after.is_empty() { None } else { rest.find(after) };
                match end {
                    Some(end) => {
                        context.insert(name.to_owned(), Value::from(decode(&rest[..end])));
                        rest = &rest[end..];
                    }
                    None if rest.contains('/') && !is_reserved => return None,
                    None => {
                        let before = uri[..uri.len() - rest.len()].to_owned();
                        let value = decode(rest);
                        return Some(TypedVariable {
                            name,
                            value,
                            context,
                            before,
                            is_reserved,
                            after,
                        });
                    }
                }
            }
            TemplatePart::Other => return None,
        }
    }
    None
}

fn parse(template: &str) -> Vec<TemplatePart<'_>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        let start = rest.find('{').unwrap_or(rest.len());
        if start > 0 {
            parts.push(TemplatePart::Literal(&rest[..start]));
        }
        let Some((expression, behind)) =
            rest[start..].strip_prefix('{').and_then(|rest| rest.split_once('}'))
        else {
            break;
        };
        let (name, is_reserved) = match expression.strip_prefix('+') {
            Some(name) => (name, true),
            None => (expression, false),
        };
        let is_name = !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
        parts.push(match is_name {
            true => TemplatePart::Variable { name, is_reserved },
            false => TemplatePart::Other,
        });
        rest = behind;
    }
    parts
}

fn encode(value: &str, is_reserved: bool) -> String {
    let mut encoded = String::new();
    for byte in value.bytes() {
        let is_plain = byte.is_ascii_alphanumeric()
            || b"-._~".contains(&byte)
            || (is_reserved && b":/?#[]@!$&'()*+,;=".contains(&byte));
        match is_plain {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Decodes `%` sequences; an invalid sequence stays.
pub(crate) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEMPLATE: &str = "git://{repo}/{branch}/{+path}";

    #[test]
    fn each_variable_is_completed_with_the_values_before_as_context() {
        let typed = |uri| typed_variable(TEMPLATE, uri).unwrap();
        let first = typed("git://in");
        assert_eq!((first.name, &*first.value), ("repo", "in"));
        assert_eq!(first.uri_with("inn keeper"), "git://inn%20keeper/");
        let second = typed("git://inn%20keeper/");
        assert_eq!((second.name, &*second.value), ("branch", ""));
        assert_eq!(Value::from(second.context.clone()), json!({"repo": "inn keeper"}));
        assert_eq!(second.uri_with("a/b"), "git://inn%20keeper/a%2Fb/");
        let third = typed("git://inn/main/src/l");
        assert_eq!((third.name, &*third.value), ("path", "src/l"));
        assert_eq!(Value::from(third.context.clone()), json!({"repo": "inn", "branch": "main"}));
        assert_eq!(third.uri_with("src/lib.rs"), "git://inn/main/src/lib.rs");
    }

    #[test]
    fn a_uri_of_another_form_has_no_variable() {
        assert_eq!(start_of(TEMPLATE), "git://");
        for (template, uri) in [
            (TEMPLATE, "gi"),
            (TEMPLATE, "file:///a"),
            ("{+anything}", "git://a"),
            ("notes://{title}", "notes://a/b"),
            ("notes://{title}/text", "notes://a/text"),
            ("notes://{?page,size}", "notes://"),
            ("notes://{open", "notes://"),
        ] {
            assert_eq!(typed_variable(template, uri), None, "{template} {uri}");
        }
    }

    #[test]
    fn an_invalid_escape_stays_and_no_text_panics() {
        assert_eq!(decode("a%20b%2"), "a b%2");
        assert_eq!(decode("%zz%+1%é"), "%zz%+1%é");
    }
}
