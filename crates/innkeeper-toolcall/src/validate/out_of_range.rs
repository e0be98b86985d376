//! Numbers outside the range of a 64-bit float.

use innkeeper_schema::{MAX_VIOLATIONS, Violation};
use serde_json::Number;

use crate::json::Json;

/// Reports each number that does not fit a float, at most [`MAX_VIOLATIONS`] numbers.
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
            if text.parse::<Number>().is_err() {
                let message = format!("must be between {:e} and {:e}", f64::MIN, f64::MAX);
                violations.push(Violation::new(pointer.clone(), message));
            }
        }
        Json::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| add_child(&at.to_string(), item));
        }
        Json::Object(members) => members.iter().for_each(|(key, member)| add_child(key, member)),
    }
}
