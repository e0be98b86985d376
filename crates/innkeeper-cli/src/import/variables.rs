//! Rewrites `${…}` of another host to `${NAME}`.

use serde_json::Value;

/// The replacement of one `${inside}`.
pub(super) enum VariableRewrite {
    /// Replaces the variable with this text.
    Replace(String),
    /// Keeps the variable.
    Keep,
}

/// Rewrites every `${…}` in every string of a value; keys stay unchanged.
pub(super) fn rewrite(value: &mut Value, decide: &mut impl FnMut(&str) -> VariableRewrite) {
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

fn rewrite_text(text: &str, decide: &mut impl FnMut(&str) -> VariableRewrite) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        output.push_str(before);
        let Some((inside, after)) = after.split_once('}') else {
            output.push_str("${");
            rest = after;
            continue;
        };
        match decide(inside) {
            VariableRewrite::Replace(text) => output.push_str(&text),
            VariableRewrite::Keep => output.extend(["${", inside, "}"]),
        }
        rest = after;
    }
    output.push_str(rest);
    output
}

/// Escapes every `${` of a value that the source host does not expand.
pub(super) fn escape(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace("${", "$${"),
        Value::Array(items) => items.iter_mut().for_each(escape),
        Value::Object(members) => members.values_mut().for_each(escape),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Converts any text to a valid name of an environment variable.
pub(super) fn env_name(text: &str) -> String {
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

    fn rewrite_upper(text: &str) -> String {
        rewrite_text(text, &mut |inside| match inside {
            "keep" => VariableRewrite::Keep,
            inside => VariableRewrite::Replace(inside.to_uppercase()),
        })
    }

    #[test]
    fn every_variable_of_a_text_is_rewritten_once() {
        assert_eq!(rewrite_upper("a ${b} ${keep} $c ${d}${e}"), "a B ${keep} $c DE");
        assert_eq!(rewrite_upper("open ${b and ${d}"), "open B AND ${D");
        assert_eq!(rewrite_upper("${never closed"), "${never closed");
    }

    #[test]
    fn names_are_made_fit_for_an_environment() {
        assert_eq!(env_name("api-key"), "API_KEY");
        assert_eq!(env_name("2fa"), "INPUT_2FA");
    }
}
