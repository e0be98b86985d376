//! `schema`: prints the JSON Schema of the configuration.

use crate::context::CommandContext;
use crate::exit::CliError;

pub(super) fn run(context: &mut CommandContext) -> Result<(), CliError> {
    Ok(context.output.print_json(&innkeeper_host::config::json_schema())?)
}
