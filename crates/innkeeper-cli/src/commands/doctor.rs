//! `doctor`: checks this machine against the configuration and starts no server.

use innkeeper_host::config::Diagnostic;
use innkeeper_host::{Host, RunnerCheck};
use serde_json::json;

use crate::configuration::{load_config, print_warnings};
use crate::context::CommandContext;
use crate::exit::{CliError, CliExitCode};
use crate::hosting::supervisor;
use crate::output::{Output, Style, escape_inline};
use crate::own_paths::own_paths;

pub(super) async fn run(context: &mut CommandContext) -> Result<(), CliError> {
    let config = load_config(context)?.config;
    print_warnings(&mut context.output, &config.warnings)?;
    let required: Vec<String> = config
        .servers
        .values()
        .filter(|server| server.required)
        .map(|it| it.name.clone())
        .collect();
    let servers = config.servers.len();
    let builder = Host::builder(config).supervisor(supervisor()?).protect(own_paths(context));
    let problems = match builder.check() {
        Ok(warnings) => warnings,
        Err(error) => error.0,
    };
    let runners = builder.check_runners().await;
    let missing = builder.variables_not_inherited();
    let ready = !problems.iter().any(Diagnostic::is_error)
        && !runners.iter().any(|runner| {
            runner.problem.is_some()
                && runner.servers.iter().any(|server| required.contains(server))
        });
    let output = &mut context.output;
    if output.is_json() {
        output.print_json(&json!({
            "ready": ready, "problems": problems, "runners": runners, "notInherited": missing,
        }))?;
    } else {
        print_problems(output, &problems)?;
        print_runners(output, &runners)?;
        for (names, servers) in group_by_names(missing) {
            let text = format!("variables of this shell that do not reach {servers}: {names}");
            output.print_data(&escape_inline(&text))?;
        }
        if ready {
            print_summary(output, servers, problems.len())?;
        }
    }
    if ready { Ok(()) } else { Err(CliError::without_message(CliExitCode::Usage)) }
}

fn print_problems(output: &mut Output, problems: &[Diagnostic]) -> std::io::Result<()> {
    for problem in problems {
        let suffix = if problem.is_error() { "" } else { " (warning)" };
        output.print_data(&format!("{}{suffix}", escape_inline(&problem.to_string())))?;
        if let Some(hint) = &problem.hint {
            output.print_data(&format!("    hint: {}", escape_inline(hint)))?;
        }
    }
    Ok(())
}

fn print_runners(output: &mut Output, runners: &[RunnerCheck]) -> std::io::Result<()> {
    for RunnerCheck { command, servers, version, problem } in runners {
        let users: Vec<_> = servers.iter().map(|server| format!("`{server}`")).collect();
        let state = match (version, problem) {
            (_, Some(problem)) => format!("`{command}` does not start: {problem}"),
            (Some(version), None) => format!("`{command}` starts: {version}"),
            (None, None) => format!("`{command}` starts"),
        };
        let text = format!("package runner {state} (used by {})", users.join(", "));
        output.print_data(&escape_inline(&text))?;
        if problem.is_some() {
            let hint = "    hint: run the command with `--version` in this shell; if the command \
                        works there, add the variable that the command needs to `env` of the server";
            output.print_data(hint)?;
        }
    }
    Ok(())
}

/// Groups the servers that miss the same variables; returns both lists as text.
fn group_by_names(
    missing: impl IntoIterator<Item = (String, Vec<String>)>,
) -> Vec<(String, String)> {
    let mut groups: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for (server, names) in missing {
        let server = format!("`{server}`");
        match groups.iter_mut().find(|(other, _)| *other == names) {
            Some((_, servers)) => servers.push(server),
            None => groups.push((names, vec![server])),
        }
    }
    groups.into_iter().map(|(names, servers)| (names.join(", "), servers.join(", "))).collect()
}

fn print_summary(output: &mut Output, servers: usize, problems: usize) -> std::io::Result<()> {
    let ok = output.paint(Style::Good, "ok");
    let plural = if servers == 1 { "" } else { "s" };
    let count_text = match problems {
        0 => "all programs found".to_owned(),
        absent => format!("missing optional programs: {absent}"),
    };
    output.print_data(&format!("{ok}: {servers} server{plural}, {count_text}"))
}
