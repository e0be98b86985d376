//! A launch in words, nothing left out but secrets.

use std::path::Path;

use innkeeper_host::LaunchSpec;
use innkeeper_host::config::{GuardModes, IdToken, Limits};
use serde::Serialize;

pub(super) const QUESTION: &str = "Start this, now and as long as it stays the same? [y/N] ";

/// What is logged where nobody can be asked and the file is our own.
pub(super) const UNDECIDED: &str =
    "nobody has decided on what `mcp.json` starts here, it is started; `--trust` keeps a decision";

pub(super) fn opening(file: &Path) -> String {
    format!("`{}` was found here, and nobody has decided on this yet:", file.display())
}

/// All of it, a line for each thing. What variables stand for is shown to a person who is to decide,
/// and is in no other message.
pub(super) fn lines(launch: &LaunchSpec, to_decide: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |what: &str, text: String| {
        if !text.is_empty() {
            lines.push(format!("{what}: {text}"));
        }
    };
    let quoted = |names: &[String]| joined(names.iter().map(|name| format!("`{name}`")), ", ");
    let meant = |written: &str, meaning: Option<String>| match meaning
        .filter(|meaning| to_decide && meaning != written)
    {
        Some(meaning) => format!("`{written}` = `{meaning}`"),
        None => format!("`{written}`"),
    };
    // The name of a program or a directory is no secret.
    let command = launch.command.iter();
    let command = command.map(|text| meant(text.as_written(), Some(text.expose().clone())));
    line("command", joined(command, ""));
    let args = launch.args.iter().zip(launch.meanings());
    line("arguments", joined(args.map(|(arg, meaning)| meant(arg.as_written(), meaning)), " "));
    let directory = launch.cwd.iter();
    let directory =
        directory.map(|text| meant(text.as_written(), Some(text.expose().display().to_string())));
    let mut directory = joined(directory, "");
    if let Some(place) = launch.directory.as_ref().filter(|_| to_decide && directory.is_empty()) {
        directory = format!("`{}`, where you are", place.display());
    }
    line("directory", directory);
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
    let url = launch.url.iter().map(|url| meant(url.as_written(), launch.url_meaning()));
    line("address", joined(url, ""));
    line("headers", quoted(&launch.headers));
    let helper = launch.headers_helper.iter().zip(launch.helper_meanings());
    let helper = helper.map(|(word, meaning)| meant(word.as_written(), meaning));
    line("headers printed by", joined(helper, " "));
    let limits = (launch.limits != Limits::default()).then_some(&launch.limits);
    line("limits", limits.map(as_json).unwrap_or_default());
    line("sandbox", launch.sandbox.as_ref().map(as_json).unwrap_or_default());
    line("signs in", launch.oauth.as_ref().map(as_json).unwrap_or_default());
    let enterprise = launch.oauth.iter().filter_map(|oauth| oauth.enterprise.as_ref());
    let sent = enterprise.map(|one| {
        let to = &one.token_endpoint;
        let to = meant(to.as_written(), Some(to.expose().clone()));
        match &one.id_token {
            IdToken::Value(_) => format!("a token to {to}"),
            IdToken::File(file) => {
                let path = file.expose().display().to_string();
                format!("the file {} to {to}", meant(file.as_written(), Some(path)))
            }
        }
    });
    line("sends", joined(sent, ""));
    let loose = launch.packages.iter().filter(|package| package.version.is_none());
    let loose = loose.map(|package| match package.is_address() {
        true => format!("whatever is at `{}`", package.name),
        false => format!("any version of `{}`", package.name),
    });
    line("package", joined(loose, ", "));
    if launch.by_shell {
        line("shell", "reads a text from the arguments, and may fetch more packages".to_owned());
    }
    let guard = (launch.guard != GuardModes::default()).then_some(&launch.guard);
    line("guard", guard.map(as_json).unwrap_or_default());
    lines
}

fn as_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn joined(parts: impl IntoIterator<Item = String>, between: &str) -> String {
    parts.into_iter().collect::<Vec<_>>().join(between)
}
