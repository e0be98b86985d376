//! Servers of a configuration that was found, not named: started once somebody has decided on them.

mod words;

use std::io::{self, BufRead, IsTerminal as _};
use std::path::Path;

use innkeeper_host::audit::TARGET;
use innkeeper_host::{Config, Decisions, Environment, LaunchSpec};

use crate::commands::Context;
use crate::exit::Failure;
use crate::hosting::state;
use crate::output::{Output, Tone};

/// The one file that is this program's own. The others belong to editors, and come along with
/// whatever somebody clones.
const OWN: &str = "mcp.json";

/// Says, for a whole machine, what happens where nobody can be asked.
const VARIABLE: &str = "INNKEEPER_TRUST";

/// The longest answer that is read, in bytes: a word.
const ANSWER: u64 = 64;

/// Makes sure that every server of `config` may be started. One that nobody has decided on is shown
/// and asked about; without a terminal it is refused, or in our own file told.
pub(crate) fn settle(context: &mut Context, config: &Config) -> Result<(), Failure> {
    let Some(file) = context.found.clone() else { return Ok(()) };
    let is_strict = is_strict(&context.environment)?;
    let output = &mut context.output;
    let place = state(&context.environment).map(|state| state.join("trust"));
    let mut decisions = decisions(place.as_deref(), &file, output)?;
    let launches = LaunchSpec::all(config);
    let undecided = match &decisions {
        Some(decisions) => decisions.undecided(launches),
        None => launches,
    };
    if undecided.is_empty() {
        return Ok(());
    }
    let kept = Kept { place: place.as_deref(), decisions: decisions.as_mut() };
    if context.global.trust {
        return Ok(remember(output, kept, &undecided)?);
    }
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        if ask(output, &file, &undecided, io::stdin().lock())? {
            return Ok(remember(output, kept, &undecided)?);
        }
        return Err(Failure::usage("nothing was started"));
    }
    let is_own = file == Path::new(OWN) && !is_strict;
    let refused: Vec<_> = undecided
        .iter()
        .filter(|launch| !is_own || launch.loaders().next().is_some())
        .cloned()
        .collect();
    if !refused.is_empty() {
        return Err(refuse(&file, &refused, is_own));
    }
    let servers: Vec<&str> = undecided.iter().map(|launch| &*launch.name).collect();
    let servers = servers.join(", ");
    let audit = "not-decided";
    tracing::warn!(target: TARGET, servers, audit, security = true, "{}", words::UNDECIDED);
    Ok(())
}

/// Whether a found file is never taken at its word.
fn is_strict(environment: &Environment) -> Result<bool, Failure> {
    match environment.get(VARIABLE).unwrap_or_default() {
        "" => Ok(false),
        "strict" => Ok(true),
        other => Err(Failure::usage(format!("`{VARIABLE}` is `{other}`"))
            .hint("`strict` is the only value; unset it for the default")),
    }
}

/// What was decided on this file; `None` where nothing can be kept.
fn decisions(
    place: Option<&Path>,
    file: &Path,
    output: &mut Output,
) -> io::Result<Option<Decisions>> {
    let Some(place) = place else { return Ok(None) };
    match Decisions::open(place, file) {
        Ok(decisions) => Ok(Some(decisions)),
        Err(error) => {
            let place = place.display();
            let text = format!("what was decided before cannot be read in `{place}`: {error}");
            output.label(Tone::Note, "warning", &text)?;
            Ok(None)
        }
    }
}

/// Where decisions are kept, and those that are there.
struct Kept<'k> {
    place: Option<&'k Path>,
    decisions: Option<&'k mut Decisions>,
}

/// Keeps the decision; one that cannot be kept holds this once.
fn remember(output: &mut Output, kept: Kept<'_>, decided: &[LaunchSpec]) -> io::Result<()> {
    let why = match (kept.place, kept.decisions) {
        (Some(place), Some(decisions)) => match decisions.decide(decided) {
            Ok(()) => return Ok(()),
            Err(error) => format!("`{}`: {error}", place.display()),
        },
        (Some(place), None) => format!("`{}` cannot be read", place.display()),
        (None, _) => "neither `XDG_STATE_HOME` nor `HOME` is set to an absolute path".to_owned(),
    };
    output.label(Tone::Note, "warning", &format!("the decision is not kept: {why}"))
}

/// Shows what would be started and asks for a word; anything but a yes is a no.
fn ask(
    output: &mut Output,
    file: &Path,
    undecided: &[LaunchSpec],
    answer: impl BufRead,
) -> io::Result<bool> {
    output.say(&words::opening(file))?;
    for launch in undecided {
        output.label(Tone::Strong, "server", &format!("`{}`", launch.name))?;
        for line in words::lines(launch, true) {
            output.say(&format!("  {line}"))?;
        }
    }
    output.ask(words::QUESTION)?;
    let mut line = String::new();
    answer.take(ANSWER).read_line(&mut line)?;
    Ok(["y", "yes"].contains(&line.trim().to_ascii_lowercase().as_str()))
}

fn refuse(file: &Path, refused: &[LaunchSpec], for_loaders: bool) -> Failure {
    let file = file.display();
    let mut failure = if for_loaders {
        Failure::usage(format!("`{file}` has variables that load code, and nobody decided on that"))
    } else {
        Failure::usage(format!("nobody has decided on the servers of `{file}`"))
    };
    for launch in refused {
        failure = failure.detail(format!("server `{}`", launch.name));
        for line in words::lines(launch, false) {
            failure = failure.detail(format!("  {line}"));
        }
    }
    failure.hint(format!(
        "if you mean them: `--config {file}` says so for this time, `--trust` from now on; on a \
         terminal you are asked"
    ))
}

#[cfg(test)]
mod tests {
    use innkeeper_host::Environment;
    use serde_json::json;

    use super::*;
    use crate::output::capture;

    fn launches() -> Vec<LaunchSpec> {
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
        }});
        let environment = Environment::from_pairs([("RUNNER", "npx"), ("API_KEY", "hunter2")]);
        let environment = environment.with_current_dir("/home/ada/clone");
        let config = Config::from_value(&file, "mcp.json", Path::new("/"), &environment).unwrap();
        LaunchSpec::all(&config)
    }

    #[test]
    fn everything_a_launch_is_made_of_is_shown_and_no_secret_and_no_escape_code() {
        let (mut output, out, err) = capture::output(false, false);
        assert!(!ask(&mut output, Path::new("mcp.json"), &launches(), &b""[..]).unwrap());
        insta::assert_snapshot!(err.text());
        assert_eq!(out.text(), "");
        assert!(!err.text().contains("hunter2"));
    }

    #[test]
    fn a_refusal_has_what_stands_in_the_file_and_nothing_that_a_variable_holds() {
        let (mut output, _, err) = capture::output(false, false);
        refuse(Path::new(".mcp.json"), &launches(), false).report(&mut output);
        let said = err.text();
        assert!(said.contains("command: `${RUNNER}`\n") && said.contains("`TOKEN`"), "{said}");
        assert!(!said.contains("npx") && !said.contains("hunter2"), "{said}");
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        for (answer, expected) in [
            ("y\n", true),
            ("Yes\n", true),
            (" y \r\n", true),
            ("\n", false),
            ("", false),
            ("n\n", false),
            ("yesterday\n", false),
        ] {
            let (mut output, ..) = capture::output(false, false);
            let said = ask(&mut output, Path::new("mcp.json"), &[], answer.as_bytes()).unwrap();
            assert_eq!(said, expected, "{answer:?}");
        }
    }

    #[test]
    fn a_wrong_word_for_the_whole_machine_is_no_word() {
        let with = |value: &str| is_strict(&Environment::from_pairs([(VARIABLE, value)]));
        assert!(!with("").unwrap() && with("strict").unwrap());
        assert!(with("Strict").is_err() && with("off").is_err());
    }
}
