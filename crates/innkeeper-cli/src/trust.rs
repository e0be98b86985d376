//! Launch approval for servers of a configuration file that was found.

mod messages;

use std::borrow::Cow;
use std::io::{self, BufRead, IsTerminal as _};
use std::path::Path;

use innkeeper_host::audit::TARGET;
use innkeeper_host::{Config, Environment, GatewaySpec, LaunchSpec, TrustDecisions, TrustPolicy};

use crate::configuration::OWN_CONFIG_FILE;
use crate::context::CommandContext;
use crate::exit::CliError;
use crate::output::{Output, Style};
use crate::state_dir::state_dir;

/// Environment variable that sets the policy for non-interactive runs.
const TRUST_VARIABLE: &str = "INNKEEPER_TRUST";

/// Maximum number of bytes read from a reply; a reply is one word.
const MAX_ANSWER_BYTES: u64 = 64;

/// What the user has not approved yet.
#[derive(Debug, Default)]
struct Undecided {
    launches: Vec<LaunchSpec>,
    gateway: Option<GatewaySpec>,
}

impl Undecided {
    fn new(config: &Config, decisions: Option<&TrustDecisions>) -> Self {
        let launches = LaunchSpec::all(config);
        let gateway = GatewaySpec::from_config(config);
        match decisions {
            None => Self { launches, gateway },
            Some(decisions) => Self {
                launches: decisions.undecided(launches),
                gateway: gateway.filter(|gateway| !decisions.is_approved(gateway)),
            },
        }
    }

    fn is_empty(&self) -> bool {
        self.launches.is_empty() && self.gateway.is_none()
    }

    fn approve(&self, decisions: &mut TrustDecisions) -> io::Result<()> {
        if let Some(gateway) = &self.gateway {
            decisions.approve_gateway(gateway)?;
        }
        decisions.approve(&self.launches)
    }
}

/// Ensures that the user trusts every server of `config` and its settings of the gateway, if they come
/// from a file that needs an approval. On a terminal, asks about what is undecided; without one, rejects
/// the file, unless the user accepts any `mcp.json`.
pub(crate) fn ensure_trusted(
    context: &mut CommandContext,
    config: &Config,
    file: Option<&Path>,
) -> Result<(), CliError> {
    let Some(file) = file else { return Ok(()) };
    let accepts_own_file = accepts_own_file(&context.environment)?;
    let output = &mut context.output;
    let store_directory = state_dir(&context.environment).map(|state| state.join("trust"));
    let mut decisions = open_decisions(store_directory.as_deref(), file, output)?;
    let undecided = Undecided::new(config, decisions.as_ref());
    if undecided.is_empty() {
        return Ok(());
    }
    let store =
        StoredDecisions { directory: store_directory.as_deref(), decisions: decisions.as_mut() };
    if context.global.trust {
        return Ok(store_decision(output, store, &undecided)?);
    }
    let problem = format!("the servers of `{}` are not trusted", file.display());
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        if confirm(output, file, &undecided, io::stdin().lock())? {
            return Ok(store_decision(output, store, &undecided)?);
        }
        return Err(CliError::usage(problem));
    }
    if !accepts_own_file || !is_own_file(file) {
        return Err(untrusted_error(problem, file, &undecided));
    }
    if undecided.launches.iter().any(loads_code) {
        let launches = undecided.launches.into_iter().filter(loads_code).collect();
        let problem =
            format!("`{}` is not trusted and sets variables that load code", file.display());
        return Err(untrusted_error(problem, file, &Undecided { launches, gateway: None }));
    }
    let servers: Vec<&str> = undecided.launches.iter().map(|launch| &*launch.name).collect();
    let servers = servers.join(", ");
    let audit = "not-decided";
    tracing::warn!(target: TARGET, servers, audit, security = true, "{}", messages::UNDECIDED_WARNING);
    Ok(())
}

fn loads_code(launch: &LaunchSpec) -> bool {
    launch.program.code_loading_variables().next().is_some()
}

/// Returns the policy of a reload, which asks nobody: the launches of `file` that the user approved
/// before, and those that start without an approval.
pub(crate) fn stored_policy(environment: &Environment, file: &Path) -> TrustPolicy {
    let directory = state_dir(environment).map(|state| state.join("trust"));
    let decisions = directory.and_then(|directory| TrustDecisions::open(&directory, file).ok());
    let accepts_own = accepts_own_file(environment).unwrap_or(false) && is_own_file(file);
    TrustPolicy::from_fn(move |launch| {
        let is_approved = decisions
            .as_ref()
            .is_some_and(|decisions| decisions.undecided(vec![launch.clone()]).is_empty());
        is_approved || (accepts_own && launch.program.code_loading_variables().next().is_none())
    })
}

/// Stores the approval of a launch that the user has just described on the command line. Without a
/// writable store, the next command asks.
pub(crate) fn approve_launch(environment: &Environment, file: &Path, launch: LaunchSpec) {
    let Some(state) = state_dir(environment) else { return };
    let directory = state.join("trust");
    let name = launch.name.clone();
    let stored = TrustDecisions::open(&directory, file)
        .and_then(|mut decisions| decisions.approve(&[launch]));
    if let Err(error) = stored {
        tracing::info!(%error, server = %name, "approval not stored");
    }
}

/// Whether this is the configuration file of this program, and not the file of an editor.
fn is_own_file(file: &Path) -> bool {
    let directory = file.parent().and_then(Path::file_name);
    file.file_name().is_some_and(|name| name == OWN_CONFIG_FILE)
        && directory.is_none_or(|directory| directory != ".vscode")
}

/// Whether the servers of an `mcp.json` start without a terminal and without an approval.
fn accepts_own_file(environment: &Environment) -> Result<bool, CliError> {
    match environment.get(TRUST_VARIABLE).unwrap_or_default() {
        "" | "strict" => Ok(false),
        "found" => Ok(true),
        other => Err(CliError::usage(format!("invalid value `{other}` of `{TRUST_VARIABLE}`"))
            .with_hint(format!(
                "set `{TRUST_VARIABLE}` to `strict` (the default) or `found`, or unset it"
            ))),
    }
}

/// Opens the trust decisions for a file; `None` if there is no readable store.
fn open_decisions(
    directory: Option<&Path>,
    file: &Path,
    output: &mut Output,
) -> io::Result<Option<TrustDecisions>> {
    let Some(directory) = directory else { return Ok(None) };
    match TrustDecisions::open(directory, file) {
        Ok(decisions) => Ok(Some(decisions)),
        Err(error) => {
            let directory = directory.display();
            let text = format!("cannot read trust decisions from `{directory}`: {error}");
            output.labelled_status(Style::Note, "warning", &text)?;
            Ok(None)
        }
    }
}

/// The directory of the trust decisions, with the decisions if readable.
struct StoredDecisions<'k> {
    directory: Option<&'k Path>,
    decisions: Option<&'k mut TrustDecisions>,
}

/// Stores the decision; if that fails, the decision is valid for this run only.
fn store_decision(
    output: &mut Output,
    store: StoredDecisions<'_>,
    decided: &Undecided,
) -> io::Result<()> {
    let reason = match (store.directory, store.decisions) {
        (Some(store_directory), Some(decisions)) => match decided.approve(decisions) {
            Ok(()) => return Ok(()),
            Err(error) => format!("`{}`: {error}", store_directory.display()),
        },
        (Some(store_directory), None) => format!("cannot read `{}`", store_directory.display()),
        (None, _) => "neither `XDG_STATE_HOME` nor `HOME` is set to an absolute path".to_owned(),
    };
    output.labelled_status(
        Style::Note,
        "warning",
        &format!("cannot store the trust decision: {reason}"),
    )
}

/// Shows the launches and asks the user; any reply but `y` or `yes` means no.
fn confirm(
    output: &mut Output,
    file: &Path,
    undecided: &Undecided,
    input: impl BufRead,
) -> io::Result<bool> {
    output.status(&messages::opening_line(file))?;
    for launch in &undecided.launches {
        output.labelled_status(Style::Strong, "server", &format!("`{}`", launch.name))?;
        for line in messages::launch_lines(launch, true) {
            output.status(&format!("  {line}"))?;
        }
    }
    for line in undecided.gateway.iter().flat_map(messages::gateway_lines) {
        output.status(&line)?;
    }
    output.prompt(messages::TRUST_PROMPT)?;
    let mut line = String::new();
    input.take(MAX_ANSWER_BYTES).read_line(&mut line)?;
    Ok(["y", "yes"].contains(&line.trim().to_ascii_lowercase().as_str()))
}

fn untrusted_error(problem: String, file: &Path, denied: &Undecided) -> CliError {
    let mut failure = CliError::usage(problem);
    for launch in &denied.launches {
        failure = failure.with_detail(format!("server `{}`", launch.name));
        for line in messages::launch_lines(launch, false) {
            failure = failure.with_detail(format!("  {line}"));
        }
    }
    for line in denied.gateway.iter().flat_map(messages::gateway_lines) {
        failure = failure.with_detail(line);
    }
    let text = file.to_string_lossy();
    let quoted = shlex::try_quote(&text).unwrap_or(Cow::Borrowed(&*text));
    let failure = failure
        .with_hint("read the file, then approve its servers once: `innkeeper tools --trust`")
        .with_hint(format!("or use the file for this command only: add `--config {quoted}`"));
    if !is_own_file(file) {
        return failure;
    }
    failure.with_hint(format!(
        "`{TRUST_VARIABLE}=found` starts any `mcp.json` without approval, as earlier versions did"
    ))
}

#[cfg(test)]
mod tests {
    use innkeeper_host::Environment;
    use serde_json::json;

    use super::*;
    use crate::output::capture;

    fn undecided() -> Undecided {
        let file = json!({"servers": {
            "files": {
                "command": "${RUNNER}", "args": ["-y", "pkg", "a\u{1b}[2J b", "${API_KEY}"],
                "cwd": "/srv", "env": {"TOKEN": "hunter2", "LD_PRELOAD": "./x.so", "LANG": null},
                "inheritEnv": true, "limits": {"openFiles": 99}, "sandbox": {"read": ["/srv"]}
            },
            "far": {
                "url": "https://a.example/${RUNNER}", "headers": {"Authorization": "hunter2"},
                "oauth": {"clientId": "me", "clientSecret": "hunter2"}
            },
            "near": {"command": "./run.sh"}
        }, "serve": {"listen": "0.0.0.0:7300", "auth": {"apiKeys": [
            {"principal": "ada", "sha256": "a".repeat(64)}
        ]}}});
        let environment = Environment::from_pairs([("RUNNER", "npx"), ("API_KEY", "hunter2")]);
        let environment = environment.with_current_dir("/home/ada/clone");
        let config = Config::from_value(&file, "mcp.json", Path::new("/"), &environment).unwrap();
        Undecided::new(&config, None)
    }

    /// Attack: terminal | a launch contains secrets and escape codes | the approval request
    /// contains neither | Foreign text stays text
    #[test]
    fn everything_a_launch_is_made_of_is_shown_and_no_secret_and_no_escape_code() {
        let (mut output, out, err) = capture::captured_output(false, false);
        assert!(!confirm(&mut output, Path::new("mcp.json"), &undecided(), &b""[..]).unwrap());
        insta::assert_snapshot!(err.text());
        assert_eq!(out.text(), "");
        assert!(!err.text().contains("hunter2"));
    }

    /// Attack: terminal | an argument contains back-ticks and quotes to look like two arguments |
    /// the approval request quotes the argument like a shell | Foreign text stays text
    #[test]
    fn an_argument_with_a_backtick_is_shown_as_one_argument() {
        let file = json!({"servers": {"a": {"command": "run", "args": ["x` `-y", "it's`"]}}});
        let environment = Environment::from_pairs([("A", "b")]);
        let config = Config::from_value(&file, "mcp.json", Path::new("/"), &environment).unwrap();
        let (mut output, _, err) = capture::captured_output(false, false);
        confirm(&mut output, Path::new("mcp.json"), &Undecided::new(&config, None), &b""[..])
            .unwrap();
        let shown = r#"arguments: 'x` `-y' "it's"'`'"#;
        assert!(err.text().contains(shown), "{}", err.text());
    }

    #[test]
    fn an_untrusted_error_shows_the_text_of_the_file_and_no_value_of_a_variable() {
        let (mut output, _, err) = capture::captured_output(false, false);
        untrusted_error("denied".to_owned(), Path::new(".mcp.json"), &undecided())
            .report(&mut output);
        let stderr = err.text();
        assert!(
            stderr.contains("command: `${RUNNER}`\n") && stderr.contains("`TOKEN`"),
            "{stderr}"
        );
        assert!(!stderr.contains("npx") && !stderr.contains("hunter2"), "{stderr}");
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        for (reply, expected) in [
            ("y\n", true),
            ("Yes\n", true),
            (" y \r\n", true),
            ("\n", false),
            ("", false),
            ("n\n", false),
            ("yesterday\n", false),
        ] {
            let (mut output, ..) = capture::captured_output(false, false);
            let confirmed = confirm(
                &mut output,
                Path::new("mcp.json"),
                &Undecided::default(),
                reply.as_bytes(),
            )
            .unwrap();
            assert_eq!(confirmed, expected, "{reply:?}");
        }
    }

    #[test]
    fn an_unknown_value_of_the_trust_variable_is_an_error() {
        let accepts = |value| accepts_own_file(&Environment::from_pairs([(TRUST_VARIABLE, value)]));
        assert!(!accepts("").unwrap() && !accepts("strict").unwrap() && accepts("found").unwrap());
        assert!(accepts("Strict").is_err() && accepts("off").is_err());
    }
}
