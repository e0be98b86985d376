//! Tests of accepted schemas, validation, and the cost of hostile schemas.

mod agreement;
mod drafts;
mod eval_cost;
mod fitting;
mod hostile;
mod limits;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::SchemaError;
use crate::schema::Schema;

/// Returns a schema within its limits.
fn read(schema: &Value) -> Result<Schema, SchemaError> {
    let schema = Schema::from_text(RawValue::from_string(schema.to_string()).unwrap());
    schema.check_limits()?;
    Ok(schema)
}

/// Returns the message of a schema that exceeds a limit.
fn limit_message(schema: &Value) -> String {
    read(schema).unwrap_err().to_string()
}

/// Returns pointer and message of every violation; a check without a result has one message.
fn check(schema: &Value, value: &Value) -> Vec<(String, String)> {
    match read(schema).unwrap().violations(value) {
        Ok(all) => {
            all.into_iter().map(|violation| (violation.pointer, violation.message)).collect()
        }
        Err(error) => vec![(String::new(), error.to_string())],
    }
}

fn fits(schema: &Value, value: &Value) -> bool {
    check(schema, value).is_empty()
}

fn pointers(schema: &Value, value: &Value) -> Vec<String> {
    check(schema, value).into_iter().map(|(pointer, _)| pointer).collect()
}

/// Returns the only message, which concerns the whole value.
fn only_message(schema: &Value, value: &Value) -> String {
    match check(schema, value).as_slice() {
        [(pointer, message)] if pointer.is_empty() => message.clone(),
        other => panic!("{other:?}"),
    }
}
