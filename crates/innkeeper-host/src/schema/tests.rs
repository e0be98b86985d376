//! Tests of what is offered, what fits, and what hostile schemas cost.

mod agreement;
mod drafts;
mod fitting;
mod hostile;
mod load;

use serde_json::Value;
use serde_json::value::RawValue;

use super::ArgumentSchema;

fn read(schema: &Value) -> Result<ArgumentSchema, String> {
    ArgumentSchema::new(&RawValue::from_string(schema.to_string()).unwrap())
}

/// Pointer and message of everything that does not fit.
fn check(schema: &Value, arguments: &Value) -> Vec<(String, String)> {
    let problems = read(schema).unwrap().check(arguments);
    problems.into_iter().map(|problem| (problem.pointer, problem.message)).collect()
}

fn fits(schema: &Value, arguments: &Value) -> bool {
    check(schema, arguments).is_empty()
}

fn pointers(schema: &Value, arguments: &Value) -> Vec<String> {
    check(schema, arguments).into_iter().map(|(pointer, _)| pointer).collect()
}

/// The one problem of the whole arguments.
fn whole(schema: &Value, arguments: &Value) -> String {
    match check(schema, arguments).as_slice() {
        [(pointer, message)] if pointer.is_empty() => message.clone(),
        other => panic!("{other:?}"),
    }
}
