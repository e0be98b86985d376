//! Tests of accepted schemas, validation, and the cost of hostile schemas.

mod agreement;
mod drafts;
mod eval_cost;
mod fitting;
mod hostile;

use serde_json::Value;
use serde_json::value::RawValue;

use super::ArgumentSchema;

fn read(schema: &Value) -> Result<ArgumentSchema, String> {
    ArgumentSchema::new(&RawValue::from_string(schema.to_string()).unwrap())
}

/// Returns pointer and message of every problem.
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

/// Returns the only problem, which concerns the whole arguments.
fn only_message(schema: &Value, arguments: &Value) -> String {
    match check(schema, arguments).as_slice() {
        [(pointer, message)] if pointer.is_empty() => message.clone(),
        other => panic!("{other:?}"),
    }
}
