//! `doctor`: checks this machine against the configuration and starts nothing.

use innkeeper_host::Host;
use innkeeper_host::config::Diagnostic;
use serde_json::json;

use super::CommandContext;
use crate::configuration::{load_config, print_warnings};
use crate::exit::{CliError, CliExitCode};
use crate::output::{Style, escape_inline};

pub(super) fn run(context: &mut CommandContext) -> Result<(), CliError> {
    let config = load_config(context)?;
    print_warnings(&mut context.output, &config.warnings)?;
    let servers = config.servers.len();
    let problems = match Host::builder(config).check() {
        Ok(warnings) => warnings,
        Err(error) => error.0,
    };
    let ready = !problems.iter().any(Diagnostic::is_error);
    if context.output.is_json() {
        context.output.print_json(&json!({ "ready": ready, "problems": problems }))?;
    } else {
        for problem in &problems {
            let suffix = if problem.is_error() { "" } else { " (warning)" };
            context
                .output
                .print_data(&format!("{}{suffix}", escape_inline(&problem.to_string())))?;
            if let Some(hint) = &problem.hint {
                context.output.print_data(&format!("    hint: {}", escape_inline(hint)))?;
            }
        }
        if ready {
            let ok = context.output.paint(Style::Good, "ok");
            let plural = if servers == 1 { "" } else { "s" };
            let count_text = match problems.len() {
                0 => "all programs found".to_owned(),
                absent => format!("missing optional programs: {absent}"),
            };
            context.output.print_data(&format!("{ok}: {servers} server{plural}, {count_text}"))?;
        }
    }
    if ready { Ok(()) } else { Err(CliError::without_message(CliExitCode::Usage)) }
}
