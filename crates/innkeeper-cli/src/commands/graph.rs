//! `graph`: the waves in which the servers start.

use serde_json::json;

use super::Context;
use crate::configuration::load;
use crate::exit::Failure;

pub(super) fn run(context: &mut Context) -> Result<(), Failure> {
    let config = load(context)?;
    let waves = config.waves();
    if context.output.is_json() {
        context.output.value(&json!({ "waves": waves }))?;
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
        context.output.data(&format!("wave {}: {}", index + 1, servers.join(", ")))?;
    }
    Ok(())
}
