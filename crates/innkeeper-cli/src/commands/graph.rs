//! `graph`: prints the start order of the servers as dependency waves.

use serde_json::json;

use super::CommandContext;
use crate::configuration::load_config;
use crate::exit::CliError;

pub(super) fn run(context: &mut CommandContext) -> Result<(), CliError> {
    let config = load_config(context)?;
    let waves = config.waves();
    if context.output.is_json() {
        context.output.print_json(&json!({ "waves": waves }))?;
        return Ok(());
    }
    for (index, wave) in waves.iter().enumerate() {
        let servers: Vec<String> = wave
            .iter()
            .map(|name| match &config.servers[*name].dependencies[..] {
                [] => (*name).to_owned(),
                needs => format!("{name} (after {})", needs.join(", ")),
            })
            .collect();
        context.output.print_data(&format!("wave {}: {}", index + 1, servers.join(", ")))?;
    }
    Ok(())
}
