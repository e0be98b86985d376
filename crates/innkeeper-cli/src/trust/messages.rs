//! Describes a launch completely, without secrets.

use std::borrow::Cow;
use std::path::Path;

use innkeeper_host::config::{
    ExpandedValue, GuardModes, IdToken, InheritedEnvironment, ResourceLimits,
};
use innkeeper_host::{GatewaySpec, LaunchSpec};
use serde::Serialize;

pub(super) const TRUST_PROMPT: &str =
    "Trust these servers until their configuration changes? [y/N] ";

/// Warning for `mcp.json` if the user cannot be asked.
pub(super) const UNDECIDED_WARNING: &str =
    "accepted `mcp.json` without a trust decision; use `--trust` to store a trust decision";

pub(super) fn opening_line(file: &Path) -> String {
    format!("the servers of `{}` are not trusted yet:", file.display())
}

/// Returns one line per property of the launch. Expanded variables, and texts that look like secrets,
/// appear only in the prompt, never in other messages.
pub(super) fn launch_lines(launch: &LaunchSpec, to_decide: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |label: &str, text: String| {
        if !text.is_empty() {
            lines.push(format!("{label}: {text}"));
        }
    };
    let quoted = |names: &[String]| join(names.iter().map(|name| code(name)), ", ");
    let with_expansion = |source: &str, meaning: Option<String>| match meaning
        .filter(|meaning| to_decide && meaning != source)
    {
        Some(meaning) => format!("{} = {}", code(source), code(&meaning)),
        None => code(source),
    };
    // A mask could hide a command from the person who decides.
    let source = |text: &'_ ExpandedValue| -> String {
        if to_decide { text.source() } else { text.as_written() }.to_owned()
    };
    // Names of programs and directories are not secret.
    let command = launch.program.command.iter();
    let command =
        command.map(|text| with_expansion(text.as_written(), Some(text.expose().clone())));
    line("command", join(command, ""));
    let args = launch.program.args.iter().zip(launch.program.arg_expansions());
    line("arguments", join(args.map(|(arg, meaning)| with_expansion(&source(arg), meaning)), " "));
    let directory = launch.program.cwd.iter();
    let directory = directory
        .map(|text| with_expansion(text.as_written(), Some(text.expose().display().to_string())));
    let mut directory = join(directory, "");
    if let Some(current_directory) =
        launch.program.directory.as_ref().filter(|_| to_decide && directory.is_empty())
    {
        let current_directory = current_directory.display().to_string();
        directory = format!("{} (current directory)", code(&current_directory));
    }
    line("directory", directory);
    let loaders: Vec<_> = launch.program.code_loading_variables().collect();
    let variables = launch.program.env.iter().map(|name| {
        let marked = if loaders.contains(&&**name) { " (loads code)" } else { "" };
        format!("{}{marked}", code(name))
    });
    line("variables", join(variables, ", "));
    line("unset variables", quoted(&launch.program.unset_env));
    if launch.program.inherit_env == InheritedEnvironment::Complete {
        line("environment", "all variables of this shell".to_owned());
    }
    let url = launch.remote.url.iter();
    let url = url.map(|url| with_expansion(&source(url), launch.remote.url_expansion()));
    line("address", join(url, ""));
    line("headers", quoted(&launch.remote.headers));
    let helper = launch.remote.headers_helper.iter().zip(launch.remote.headers_helper_expansions());
    let helper = helper.map(|(argument, meaning)| with_expansion(&source(argument), meaning));
    line("header command", join(helper, " "));
    let limits = (launch.limits != ResourceLimits::default()).then_some(&launch.limits);
    line("limits", limits.map(to_json).unwrap_or_default());
    line("sandbox", launch.sandbox.as_ref().map(to_json).unwrap_or_default());
    line("sign-in", launch.remote.oauth.as_ref().map(to_json).unwrap_or_default());
    let enterprise = launch.remote.oauth.iter().filter_map(|oauth| oauth.enterprise.as_ref());
    let sent = enterprise.map(|auth| {
        let to = &auth.token_endpoint;
        let to = with_expansion(to.as_written(), Some(to.expose().clone()));
        match &auth.id_token {
            IdToken::Value(_) => format!("a token to {to}"),
            IdToken::File(file) => {
                let path = file.expose().display().to_string();
                format!("the file {} to {to}", with_expansion(file.as_written(), Some(path)))
            }
        }
    });
    line("sends", join(sent, ""));
    line("package", unpinned_packages(launch));
    if launch.downloads.uses_shell {
        line(
            "shell",
            "runs a command from the arguments; the command can fetch more packages".to_owned(),
        );
    }
    let guard = (launch.guard != GuardModes::default()).then_some(&launch.guard);
    line("guard", guard.map(to_json).unwrap_or_default());
    lines
}

/// Returns the settings of the gateway, one a line below a heading.
pub(super) fn gateway_lines(gateway: &GatewaySpec) -> Vec<String> {
    let settings = gateway.settings.iter().map(|(key, value)| format!("  {key}: {value}"));
    std::iter::once("gateway (`serve`)".to_owned()).chain(settings).collect()
}

/// Describes the packages without a version.
fn unpinned_packages(launch: &LaunchSpec) -> String {
    let unpinned = launch.downloads.packages.iter().filter(|package| package.version.is_none());
    let described = unpinned.map(|package| match package.is_location() {
        true => format!("the current content of {}", code(&package.name)),
        false => format!("the latest version of {}", code(&package.name)),
    });
    join(described, ", ")
}

/// Marks one value of the file. A value with a backtick is quoted as in a shell, because it could look
/// like several values.
fn code(text: &str) -> String {
    if text.contains('`') {
        shlex::try_quote(text).map_or_else(|_| format!("{text:?}"), Cow::into_owned)
    } else {
        format!("`{text}`")
    }
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn join(items: impl IntoIterator<Item = String>, between: &str) -> String {
    items.into_iter().collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use innkeeper_host::{Config, Environment};
    use serde_json::json;

    use super::*;

    /// Attack: files | a file dresses its command as a secret, so that a mask covers it | the question
    /// shows the exact text, and other messages mask it | Approval first
    #[test]
    fn the_question_shows_arguments_and_addresses_as_the_file_has_them() {
        let key = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaa";
        for hidden in [
            format!("run-evil; : {key}"),
            "run-evil; : Bearer abcdefghijklmnop".to_owned(),
            "--password=run-evil".to_owned(),
            ": https://a.example/?token=abcdefgh;run-evil".to_owned(),
        ] {
            let file = json!({"servers": {
                "one": {"command": "sh", "args": ["-c", hidden]},
                "two": {"url": "https://a.example/mcp?token=run-evil"},
                "three": {"url": "https://a.example", "headersHelper": ["sh", "-c", hidden]}}});
            let env = Environment::from_pairs([("A", "1")]);
            let config = Config::from_value(&file, "mcp.json", Path::new("/"), &env).unwrap();
            for launch in LaunchSpec::all(&config) {
                let shown = |to_decide| launch_lines(&launch, to_decide).join("\n");
                assert!(shown(true).contains("run-evil"), "{}", shown(true));
                assert!(!shown(false).contains("run-evil"), "{}", shown(false));
            }
        }
    }
}
