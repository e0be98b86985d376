//! `check`: every problem of the configuration; starts nothing.

use innkeeper_host::config::{Problem, Severity};
use innkeeper_host::lock::Package;
use innkeeper_host::{Config, LaunchSpec};
use serde_json::json;

use super::Context;
use crate::configuration::files;
use crate::exit::{Code, Failure};
use crate::output::{Output, inline};

pub(super) fn run(context: &mut Context) -> Result<(), Failure> {
    let files = files(&context.global.config)?;
    let (problems, servers) = match Config::load(&files, &context.environment) {
        Ok(mut config) => {
            config.warnings.extend(loose_packages(&config));
            (config.warnings, config.servers.len())
        }
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

/// Servers that run what somebody publishes next.
fn loose_packages(config: &Config) -> Vec<Problem> {
    let launches = LaunchSpec::all(config);
    let loose = launches.iter().zip(config.servers.values()).flat_map(|(launch, server)| {
        let problem = move |(message, hint)| Problem {
            severity: Severity::Warning,
            source: server.position.source.to_string(),
            line: server.position.line,
            column: server.position.column,
            key: format!("{}.args", server.key),
            message,
            hint,
        };
        let packages = launch.packages.iter().filter(|package| package.version.is_none());
        let shell = launch.by_shell.then(by_shell);
        packages.map(loose).chain(shell).map(problem)
    });
    loose.collect()
}

/// What is said of a package without a version, and what to do about it.
fn loose(package: &Package) -> (String, Option<String>) {
    let name = &package.name;
    if package.is_address() {
        return (format!("runs whatever is at `{name}` when it starts"), None);
    }
    let hint = format!("name the one you looked at: `{name}@1.2.3` (`pipx`: `==1.2.3`)");
    (format!("runs whatever version of `{name}` is the newest"), Some(hint))
}

fn by_shell() -> (String, Option<String>) {
    let message = "has a shell read a text, in which any package may be named".to_owned();
    (message, Some("name the packages with `-p` and the program without `-c`".to_owned()))
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
