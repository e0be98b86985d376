//! `schema`: the JSON Schema of the configuration.

use super::Context;
use crate::exit::Failure;

pub(super) fn run(context: &mut Context) -> Result<(), Failure> {
    Ok(context.output.value(&innkeeper_host::config::json_schema())?)
}
