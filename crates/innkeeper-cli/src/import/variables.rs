//! `${…}` in another host's strings, rewritten to the `${NAME}` that is read here.

use serde_json::Value;

/// What becomes of one `${inside}`.
pub(super) enum Fate {
    /// This text takes its place.
    Becomes(String),
    /// It stays as it is.
    Stays,
}

/// Rewrites every `${…}` of every string in a value, keys excluded.
pub(super) fn rewrite(value: &mut Value, decide: &mut impl FnMut(&str) -> Fate) {
    match value {
        Value::String(text) => {
            if text.contains("${") {
                *text = rewrite_text(text, decide);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite(item, decide)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| rewrite(member, decide));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn rewrite_text(text: &str, decide: &mut impl FnMut(&str) -> Fate) -> String {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        made.push_str(before);
        let Some((inside, after)) = after.split_once('}') else {
            made.push_str("${");
            rest = after;
            continue;
        };
        match decide(inside) {
            Fate::Becomes(text) => made.push_str(&text),
            Fate::Stays => made.extend(["${", inside, "}"]),
        }
        rest = after;
    }
    made.push_str(rest);
    made
}

/// Escapes every `${` of a value whose host reads it as plain text.
pub(super) fn escape(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace("${", "$${"),
        Value::Array(items) => items.iter_mut().for_each(escape),
        Value::Object(members) => members.values_mut().for_each(escape),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A name that an environment variable can have, made from any text.
pub(super) fn name_from(text: &str) -> String {
    let name: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
        format!("INPUT_{name}")
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upper(text: &str) -> String {
        rewrite_text(text, &mut |inside| match inside {
            "keep" => Fate::Stays,
            inside => Fate::Becomes(inside.to_uppercase()),
        })
    }

    #[test]
    fn every_variable_of_a_text_is_rewritten_once() {
        assert_eq!(upper("a ${b} ${keep} $c ${d}${e}"), "a B ${keep} $c DE");
        assert_eq!(upper("open ${b and ${d}"), "open B AND ${D");
        assert_eq!(upper("${never closed"), "${never closed");
    }

    #[test]
    fn names_are_made_fit_for_an_environment() {
        assert_eq!(name_from("api-key"), "API_KEY");
        assert_eq!(name_from("2fa"), "INPUT_2FA");
    }
}
