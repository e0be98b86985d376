//! Validation of JSON values against untrusted JSON Schemas, without I/O, clock or log.
//!
//! A schema comes from a server and may be hostile, and so may a value. A [`Schema`] therefore costs
//! bounded time and memory: its size, its references and its expanded cost have limits that are
//! checked before compilation; the first use compiles the schema; and a value that would cost too
//! much is rejected before validation. References stay within the schema, and nothing is fetched.
//! A keyword that violates the dialect but has only one possible meaning, such as
//! `"required": null`, is corrected for the check. `format` is an annotation, as in the specification: it is not checked.
//!
//! ```
//! use innkeeper_schema::Schema;
//! use serde_json::json;
//!
//! let schema = Schema::from_value(json!({"properties": {"depth": {"type": "integer"}}}));
//! let violations = schema.violations(&json!({"depth": "3"}))?;
//! assert_eq!(violations[0].to_string(), "`/depth`: expected integer, found string");
//! # Ok::<(), innkeeper_schema::CheckError>(())
//! ```

mod compiled;
mod correction;
mod cost;
mod draft;
mod error;
mod eval_cost;
mod graph;
mod keywords;
mod limits;
mod match_cost;
mod messages;
mod number;
mod pattern;
mod quote;
mod reference;
mod schema;
mod schema_size;
mod source;
mod type_name;
mod value_size;
mod violation;

#[cfg(test)]
mod tests;

pub use error::{CheckError, SchemaError};
pub use messages::MAX_VIOLATIONS;
pub use number::{MIN_ROUNDED_BYTES, parse_number};
pub use quote::quote;
pub use schema::Schema;
pub use type_name::{ANY_TYPE, standard_type_name};
pub use violation::Violation;
