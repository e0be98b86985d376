//! `lock`: writes the pins of every tool definition, or tells what is not as it was pinned.

use std::path::Path;

use innkeeper_host::{Change, ChangeClass, Config, Host, Lock};
use serde_json::{Value, json};

use super::Context;
use crate::args::LockArgs;
use crate::configuration::load;
use crate::exit::{Code, Failure};
use crate::hosting::with_host;
use crate::output::{Output, Tone, inline};
use crate::pins;

/// How much of a value is shown to a person, in characters; `--json` has all of it.
const SHOWN: usize = 400;

/// How much of two texts is shown before they part, in characters.
const BEFORE: usize = 60;

pub(super) async fn run(context: &mut Context, args: &LockArgs) -> Result<(), Failure> {
    let config = load(context)?;
    // Taken away from the host: what the lock would refuse is looked at here.
    let file = context.lock.take().unwrap_or_else(|| pins::beside(&[]));
    let pinned = pins::read(&file)?;
    if args.check && pinned.is_none() {
        let message = format!("there is no `{}` to check against", file.display());
        return Err(Failure::usage(message).hint("`innkeeper lock` makes one"));
    }
    let pinned = pinned.unwrap_or_default();
    let about = config.clone();
    let work = async |host: &Host, _: &mut Output| Ok(host.pins());
    let (mut found, _) = with_host(context, config, work).await?;
    found.policy = pinned.policy;
    let unseen = keep_unseen(&about, &pinned, &mut found);
    let changes = pinned.compare(&found);
    let output = &mut context.output;
    tell(output, &changes, &unseen)?;
    warn(output, &found, &unseen)?;
    if args.check {
        checked(output, &found, &changes, &unseen)
    } else {
        write(output, &file, &found)
    }
}

/// Keeps the pins of servers that are switched off or not ready; gives the names of the latter.
fn keep_unseen<'c>(config: &'c Config, pinned: &Lock, found: &mut Lock) -> Vec<&'c str> {
    let names = config.servers.keys().map(String::as_str);
    let unseen: Vec<_> = names.filter(|name| !found.servers.contains_key(*name)).collect();
    let off = config.disabled.keys().map(String::as_str);
    for name in unseen.iter().copied().chain(off) {
        if let Some(before) = pinned.servers.get(name) {
            found.servers.insert(name.to_owned(), before.clone());
        }
    }
    unseen
}

fn tell(output: &mut Output, changes: &[Change], unseen: &[&str]) -> Result<(), Failure> {
    if output.is_json() {
        let mut told = json!({ "changes": changes });
        if !unseen.is_empty() {
            told["unavailable"] = json!(unseen);
        }
        return Ok(output.value(&told)?);
    }
    for change in changes {
        let tone = match change.class {
            ChangeClass::Compatible => Tone::Good,
            ChangeClass::Breaking => Tone::Note,
            ChangeClass::Suspicious => Tone::Error,
        };
        let class = output.paint(tone, &format!("{:<10}", change.class));
        let dot = if change.tool.is_some() { "." } else { "" };
        let tool = change.tool.as_deref().unwrap_or_default();
        let item = format!("{}{dot}{tool}  {}", change.server, change.what);
        output.data(&format!("{class}  {}", inline(&item)))?;
        for line in values(change) {
            output.data(&format!("    {}", inline(&line)))?;
        }
    }
    Ok(())
}

/// What stood there and what stands there now; texts from a little before they part.
fn values(change: &Change) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (before, after) = (change.before.as_ref().map(text), change.after.as_ref().map(text));
    let parts = match (&before, &after) {
        (Some(before), Some(after)) => {
            let same = before.chars().zip(after.chars()).take_while(|(one, other)| one == other);
            same.count().saturating_sub(BEFORE)
        }
        _ => 0,
    };
    let marked = [("-", before), ("+", after)];
    let lines = marked.into_iter().filter_map(|(mark, text)| Some((mark, text?)));
    lines.map(|(mark, text)| format!("{mark} {}", excerpt(&text, parts))).collect()
}

fn excerpt(text: &str, from: usize) -> String {
    let left = text.chars().count().saturating_sub(from).saturating_sub(SHOWN);
    let shown: String = text.chars().skip(from).take(SHOWN).collect();
    let opens = if from > 0 { "… " } else { "" };
    match left {
        0 => format!("{opens}{shown}"),
        left => format!("{opens}{shown} … ({left} characters more; `--json` has all)"),
    }
}

/// Says what no comparison shows: who was not there, and who may be another one tomorrow.
fn warn(output: &mut Output, found: &Lock, unseen: &[&str]) -> Result<(), Failure> {
    for name in unseen {
        let kept = if found.servers.contains_key(*name) {
            "its pins stay as they were"
        } else {
            "it is not pinned"
        };
        output.label(Tone::Note, "warning", &format!("server `{name}` is not ready: {kept}"))?;
    }
    for (name, server) in &found.servers {
        let package = server.package.as_ref().filter(|package| package.version.is_none());
        if let Some(package) = package {
            let fetched = &package.name;
            let text = match package.is_address() {
                true => format!("server `{name}` runs whatever is at `{fetched}` when it starts"),
                false => format!(
                    "server `{name}` runs whatever version of `{fetched}` its package runner \
                     finds; name one"
                ),
            };
            output.label(Tone::Note, "warning", &text)?;
        }
    }
    Ok(())
}

fn checked(
    output: &mut Output,
    found: &Lock,
    changes: &[Change],
    unseen: &[&str],
) -> Result<(), Failure> {
    if changes.is_empty() && unseen.is_empty() {
        return Ok(output.say(&format!("{} as pinned", count(found)))?);
    }
    if !changes.is_empty() {
        output.label(Tone::Hint, "hint", "`innkeeper lock` accepts all of this")?;
    }
    Err(Failure::silent(Code::Failed))
}

fn write(output: &mut Output, file: &Path, found: &Lock) -> Result<(), Failure> {
    let cannot = || Failure::failed(format!("`{}` cannot be written", file.display()));
    let text = found.to_text().map_err(|error| cannot().because(error))?;
    pins::replace(file, &text).map_err(|error| cannot().because(error))?;
    Ok(output.say(&format!("{} pinned in `{}`", count(found), file.display()))?)
}

fn count(lock: &Lock) -> String {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let servers = lock.servers.len();
    let tools = lock.servers.values().map(|server| server.tools.len()).sum::<usize>();
    format!("{tools} tool{} of {servers} server{}", plural(tools), plural(servers))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: &str, after: &str) -> Change {
        Change {
            server: "one".to_owned(),
            tool: Some("read".to_owned()),
            class: ChangeClass::Suspicious,
            what: "/description: words changed".to_owned(),
            before: Some(json!(before)),
            after: Some(json!(after)),
        }
    }

    #[test]
    fn a_package_without_a_version_and_a_server_that_is_not_there_are_warned_of() {
        let text = r#"{"version": 1, "servers": {
            "loose": {"launch": {"command": "npx", "args": ["p"]}, "tools": {},
                "package": {"name": "p", "version": null}},
            "exact": {"launch": {"command": "npx", "args": ["p@1.0.0"]}, "tools": {},
                "package": {"name": "p", "version": "1.0.0"}}
        }}"#;
        let lock = Lock::from_text(text, "mcp.lock").unwrap();
        let (mut output, out, err) = crate::output::capture::output(false, false);
        warn(&mut output, &lock, &["exact", "never"]).unwrap();
        assert_eq!(out.text(), "");
        insta::assert_snapshot!(err.text(), @r"
        warning: server `exact` is not ready: its pins stay as they were
        warning: server `never` is not ready: it is not pinned
        warning: server `loose` runs whatever version of `p` its package runner finds; name one
        ");
    }

    #[test]
    fn long_texts_are_shown_from_where_they_part_and_the_rest_is_counted() {
        let same = "x".repeat(1_000);
        let (before, after) = (format!("{same}old"), format!("{same}new{same}"));
        let lines = values(&change(&before, &after));
        assert_eq!(lines[0], format!("- … {}old", "x".repeat(BEFORE)));
        assert!(lines[1].starts_with(&format!("+ … {}new", "x".repeat(BEFORE))), "{}", lines[1]);
        assert!(lines[1].ends_with("… (663 characters more; `--json` has all)"), "{}", lines[1]);
        assert_eq!(excerpt(&"y".repeat(SHOWN), 0), "y".repeat(SHOWN));
    }
}
