//! A launch in words, nothing left out but secrets.

use std::path::Path;

use innkeeper_host::LaunchSpec;
use innkeeper_host::config::{Expanded, Limits};
use serde::Serialize;

pub(super) const QUESTION: &str = "Start this, now and as long as it stays the same? [y/N] ";

/// What is logged where nobody can be asked and the file is our own.
pub(super) const UNDECIDED: &str =
    "nobody has decided on this server of `mcp.json`, it is started; `--trust` keeps a decision";

pub(super) fn opening(file: &Path) -> String {
    format!("`{}` was found here, and nobody has decided on this yet:", file.display())
}

/// All of it, a line for each thing.
pub(super) fn lines(launch: &LaunchSpec) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |what: &str, text: String| {
        if !text.is_empty() {
            lines.push(format!("{what}: {text}"));
        }
    };
    let quoted = |names: &[String]| joined(names.iter().map(|name| format!("`{name}`")), ", ");
    line("command", joined(launch.command.iter().map(program), " "));
    line("arguments", joined(launch.args.iter().map(with_meaning), " "));
    let directory = launch.cwd.iter().map(|cwd| format!("`{}`", cwd.expose().display()));
    line("directory", joined(directory, ""));
    let loaders: Vec<_> = launch.loaders().collect();
    let variables = launch.env.iter().map(|name| {
        let marked = if loaders.contains(&&**name) { " (loads code)" } else { "" };
        format!("`{name}`{marked}")
    });
    line("variables", joined(variables, ", "));
    line("without variables", quoted(&launch.unset_env));
    if launch.inherit_env {
        line("environment", "all of yours".to_owned());
    }
    line("address", joined(launch.url.iter().map(with_meaning), ""));
    line("headers", quoted(&launch.headers));
    let limits = (launch.limits != Limits::default()).then_some(&launch.limits);
    line("limits", limits.map(as_json).unwrap_or_default());
    line("sandbox", launch.sandbox.as_ref().map(as_json).unwrap_or_default());
    line("signs in", launch.oauth.as_ref().map(as_json).unwrap_or_default());
    let loose = launch.package.iter().filter(|package| package.version.is_none());
    line("package", joined(loose.map(|package| format!("any version of `{}`", package.name)), ""));
    lines
}

/// A program is no secret: its name is shown with its variables and without.
fn program(command: &Expanded) -> String {
    let (value, written) = (command.expose(), command.as_written());
    if value == written { format!("`{written}`") } else { format!("`{written}` = `{value}`") }
}

fn with_meaning(text: &Expanded) -> String {
    let written = text.as_written();
    match LaunchSpec::meaning(text) {
        Some(meaning) => format!("`{written}` = `{meaning}`"),
        None => format!("`{written}`"),
    }
}

fn as_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn joined(parts: impl IntoIterator<Item = String>, between: &str) -> String {
    parts.into_iter().collect::<Vec<_>>().join(between)
}
