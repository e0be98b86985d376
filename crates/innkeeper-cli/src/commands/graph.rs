//! `graph`: prints the start order of the servers as dependency waves.

use serde_json::json;

use crate::configuration::{load_complete_config, print_warnings, select_source};
use crate::context::CommandContext;
use crate::exit::CliError;

pub(super) fn run(context: &mut CommandContext) -> Result<(), CliError> {
    let source = select_source(context)?;
    let config = load_complete_config(context)?.config;
    print_warnings(&mut context.output, &config.warnings)?;
    let waves = config.waves();
    if context.output.is_json() {
        context.output.print_json(&json!({ "waves": waves, "files": source.files() }))?;
        return Ok(());
    }
    if let Some(files) = source.display() {
        context.output.status(&format!("configuration: {files}"))?;
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
