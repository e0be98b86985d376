//! `check`: reports all problems of the configuration and starts nothing.

use innkeeper_host::config::{Diagnostic, Severity};
use innkeeper_host::lock::Package;
use innkeeper_host::{Config, LaunchSpec, writable_own_files};
use serde_json::json;

use crate::configuration::select_source;
use crate::context::CommandContext;
use crate::exit::{CliError, CliExitCode};
use crate::output::{Output, escape_inline};
use crate::own_paths::own_paths;

pub(super) fn run(context: &mut CommandContext) -> Result<(), CliError> {
    let source = select_source(context)?;
    let (problems, servers) = match source.load(&context.environment) {
        Ok(mut config) => {
            config.warnings.extend(unpinned_packages(&config));
            config.warnings.extend(writable_own_files(&config, &own_paths(context)));
            (config.warnings, config.servers.len())
        }
        Err(error) => (error.0, 0),
    };
    let valid = !problems.iter().any(|problem| problem.severity == Severity::Error);
    if context.output.is_json() {
        let files = source.files();
        let report = json!({ "valid": valid, "problems": problems, "files": files });
        context.output.print_json(&report)?;
    } else {
        print_diagnostics(&mut context.output, &problems)?;
        if valid {
            let plural = if servers == 1 { "" } else { "s" };
            let files = source.display().map(|files| format!("{files}: ")).unwrap_or_default();
            context.output.status(&format!("{files}{servers} server{plural}, no errors"))?;
        }
    }
    if valid { Ok(()) } else { Err(CliError::without_message(CliExitCode::Usage)) }
}

/// Returns a warning for each server that runs a package without a pinned version.
fn unpinned_packages(config: &Config) -> Vec<Diagnostic> {
    let launches = LaunchSpec::all(config);
    let loose = launches.iter().zip(config.servers.values()).flat_map(|(launch, server)| {
        let packages = launch.downloads.packages.iter().filter(|package| package.version.is_none());
        let shell = launch.downloads.uses_shell.then(describe_shell_launch);
        packages.map(describe_unpinned).chain(shell).map(move |(message, hint)| Diagnostic {
            severity: Severity::Warning,
            source: server.position.source.to_string(),
            line: server.position.line,
            column: server.position.column,
            key: format!("{}.args", server.key),
            message,
            hint,
        })
    });
    loose.collect()
}

/// Returns the message and the hint for a package without a version.
fn describe_unpinned(package: &Package) -> (String, Option<String>) {
    let name = &package.name;
    if package.is_location() {
        return (format!("runs the current content of `{name}` at each start"), None);
    }
    let hint =
        format!("pin the version that you reviewed: `{name}@1.2.3`, or `{name}==1.2.3` for `pipx`");
    (format!("runs the latest version of `{name}`"), Some(hint))
}

fn describe_shell_launch() -> (String, Option<String>) {
    let message = "runs a shell command that can fetch any package".to_owned();
    (message, Some("list the packages with `-p` and start the program without `-c`".to_owned()))
}

fn print_diagnostics(output: &mut Output, problems: &[Diagnostic]) -> std::io::Result<()> {
    for problem in problems {
        let label = match problem.severity {
            Severity::Error => "",
            Severity::Warning => " (warning)",
        };
        output.print_message(&format!("{}{label}", escape_inline(&problem.to_string())))?;
        if let Some(hint) = &problem.hint {
            output.print_message(&format!("    hint: {}", escape_inline(hint)))?;
        }
    }
    Ok(())
}
