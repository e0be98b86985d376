//! Numbers that the validator cannot check.

use innkeeper_schema::{MAX_VIOLATIONS, Violation, parse_number};

use crate::json::Json;

/// Reports each number that the validator cannot check, at most [`MAX_VIOLATIONS`] numbers.
pub(super) fn violations(arguments: &Json) -> Vec<Violation> {
    let mut violations = Vec::new();
    add_violations(arguments, &mut String::new(), &mut violations);
    violations
}

/// Adds the violations in the value at `pointer`.
fn add_violations(json: &Json, pointer: &mut String, violations: &mut Vec<Violation>) {
    if violations.len() == MAX_VIOLATIONS {
        return;
    }
    let mut add_child = |key: &str, child: &Json| {
        let parent_len = pointer.len();
        pointer.push('/');
        pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
        add_violations(child, pointer, violations);
        pointer.truncate(parent_len);
    };
    match json {
        Json::Null | Json::Bool(_) | Json::String(_) => {}
        Json::Number(text) => {
            if parse_number(text).is_none() {
                let message =
                    "cannot be checked: number outside a 64-bit float's range or precision";
                violations.push(Violation::new(pointer.clone(), message.to_owned()));
            }
        }
        Json::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| add_child(&at.to_string(), item));
        }
        Json::Object(members) => members.iter().for_each(|(key, member)| add_child(key, member)),
    }
}
