//! `doctor`: what this machine lacks for the configuration; starts nothing.

use innkeeper_host::Host;
use innkeeper_host::config::Problem;
use serde_json::json;

use super::Context;
use crate::configuration::load;
use crate::exit::{Code, Failure};
use crate::output::{Tone, inline};

pub(super) fn run(context: &mut Context) -> Result<(), Failure> {
    let config = load(context)?;
    let servers = config.servers.len();
    let problems = match Host::builder(config).check() {
        Ok(warnings) => warnings,
        Err(error) => error.0,
    };
    let ready = !problems.iter().any(Problem::is_error);
    if context.output.is_json() {
        context.output.value(&json!({ "ready": ready, "problems": problems }))?;
    } else {
        for problem in &problems {
            let mark = if problem.is_error() { "" } else { " (warning)" };
            context.output.data(&format!("{}{mark}", inline(&problem.to_string())))?;
            if let Some(hint) = &problem.hint {
                context.output.data(&format!("    hint: {}", inline(hint)))?;
            }
        }
        if ready {
            let good = context.output.paint(Tone::Good, "ok");
            let plural = if servers == 1 { "" } else { "s" };
            let there = match problems.len() {
                0 => "every program is there".to_owned(),
                absent => format!("without the {absent} that may be missing"),
            };
            context.output.data(&format!("{good}: {servers} server{plural}, {there}"))?;
        }
    }
    if ready { Ok(()) } else { Err(Failure::silent(Code::Usage)) }
}
