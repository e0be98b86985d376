//! `check`: every problem of the configuration; starts nothing.

use innkeeper_host::Config;
use innkeeper_host::config::{Problem, Severity};
use serde_json::json;

use super::Context;
use crate::configuration::files;
use crate::exit::{Code, Failure};
use crate::output::{Output, inline};

pub(super) fn run(context: &mut Context) -> Result<(), Failure> {
    let files = files(&context.global.config)?;
    let (problems, servers) = match Config::load(&files, &context.environment) {
        Ok(config) => (config.warnings, config.servers.len()),
        Err(error) => (error.0, 0),
    };
    let valid = !problems.iter().any(|problem| problem.severity == Severity::Error);
    if context.output.is_json() {
        context.output.value(&json!({ "valid": valid, "problems": problems }))?;
    } else {
        print(&mut context.output, &problems)?;
        if valid {
            let plural = if servers == 1 { "" } else { "s" };
            context.output.say(&format!("{servers} server{plural}, no error"))?;
        }
    }
    if valid { Ok(()) } else { Err(Failure::silent(Code::Usage)) }
}

fn print(output: &mut Output, problems: &[Problem]) -> std::io::Result<()> {
    for problem in problems {
        let mark = match problem.severity {
            Severity::Error => "",
            Severity::Warning => " (warning)",
        };
        output.data(&format!("{}{mark}", inline(&problem.to_string())))?;
        if let Some(hint) = &problem.hint {
            output.data(&format!("    hint: {}", inline(hint)))?;
        }
    }
    Ok(())
}
