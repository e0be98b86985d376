//! `lock`: pins all tool definitions, or prints differences from the lock.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use innkeeper_host::{ChangeClass, Config, Lock, PinChange};
use serde_json::json;

use crate::atomic_file;
use crate::cli::LockArgs;
use crate::configuration::{load_complete_config, load_config};
use crate::context::CommandContext;
use crate::exit::{CliError, CliExitCode};
use crate::hosting::{print_failed_servers, with_host};
use crate::output::{Output, Style, display_width, escape_inline};
use crate::pins;

/// Maximum number of characters of a value in text output; `--json` prints the whole value.
const MAX_SHOWN_CHARS: usize = 400;

/// Maximum number of changes of one tool in the summary.
const MAX_SUMMARY_CHANGES: usize = 3;

/// Number of characters shown before the first difference of two texts.
const DIFF_CONTEXT_CHARS: usize = 60;

pub(super) async fn run(context: &mut CommandContext, args: &LockArgs) -> Result<(), CliError> {
    // A new lock without the pins of a failed server would be half a lock.
    let is_complete = !args.check || context.global.strict;
    let mut loaded =
        if is_complete { load_complete_config(context)? } else { load_config(context)? };
    // The host gets no lock: this command must see the tools that the lock would exclude.
    let Some(file) = loaded.files.lock.take() else {
        let message = "`lock` needs a configuration file: the lock is stored beside the file";
        return Err(CliError::usage(message)
            .with_hint("use `--config FILE`, or add the server to a file with `innkeeper add`"));
    };
    let pinned = pins::read_lock(&file)?;
    if args.check && pinned.is_none() {
        let message = format!("`{}` does not exist", file.display());
        return Err(CliError::usage(message).with_hint("run `innkeeper lock` to create the file"));
    }
    let pinned = pinned.unwrap_or_default();
    let config = loaded.config.clone();
    let loaded = if is_complete { loaded } else { loaded.map(Config::with_optional_servers) };
    let (mut current, _) = with_host(context, loaded, async |host, output| {
        print_failed_servers(host, output)?;
        Ok(host.pins())
    })
    .await?;
    current.policy = pinned.policy;
    let unseen = retain_unavailable(&config, &pinned, &mut current);
    let changes = pinned.compare(&current);
    let output = &mut context.output;
    print_changes(output, &changes, &unseen, args.diff)?;
    print_warnings(output, &current, &unseen)?;
    if args.check {
        report_check(output, &pinned, &current, &changes, &unseen)
    } else {
        write_lock(output, &file, &current)
    }
}

/// Keeps the pins of disabled or unavailable servers; returns the names of the unavailable servers.
fn retain_unavailable<'c>(config: &'c Config, pinned: &Lock, current: &mut Lock) -> Vec<&'c str> {
    let names = config.servers.keys().chain(config.invalid.keys()).map(String::as_str);
    let unseen: Vec<_> = names.filter(|name| !current.servers.contains_key(*name)).collect();
    let off = config.disabled.keys().map(String::as_str);
    for name in unseen.iter().copied().chain(off) {
        if let Some(before) = pinned.servers.get(name) {
            current.servers.insert(name.to_owned(), before.clone());
        }
    }
    unseen
}

fn print_changes(
    output: &mut Output,
    changes: &[PinChange],
    unseen: &[&str],
    with_values: bool,
) -> Result<(), CliError> {
    if output.is_json() {
        let mut report = json!({ "changes": changes });
        if !unseen.is_empty() {
            report["unavailable"] = json!(unseen);
        }
        return Ok(output.print_json(&report)?);
    }
    let widths = changes.iter().map(|change| display_width(&escape_inline(&item_name(change))));
    let width = widths.max().unwrap_or(0);
    for of_item in changes.chunk_by(is_same_item) {
        print_item(output, of_item, width, with_values)?;
    }
    Ok(())
}

fn is_same_item(one: &PinChange, other: &PinChange) -> bool {
    (&one.server, &one.tool) == (&other.server, &other.tool)
}

/// Prints the changes of one tool, or of one server itself: one line, or with `--diff` one line for
/// each change, followed by the values.
fn print_item(
    output: &mut Output,
    changes: &[PinChange],
    width: usize,
    with_values: bool,
) -> io::Result<()> {
    let Some(most_severe) = changes.iter().max_by_key(|change| change.class) else {
        return Ok(());
    };
    if !with_values {
        let line = change_line(output, most_severe, width, &summarize(changes));
        return output.print_message(&line);
    }
    for change in changes {
        let line = change_line(output, change, width, &change.description);
        output.print_message(&line)?;
        for line in diff_lines(change) {
            output.print_data(&format!("    {}", escape_inline(&line)))?;
        }
    }
    Ok(())
}

/// Returns the class, the name in a column of this width, and the text.
fn change_line(output: &Output, change: &PinChange, width: usize, text: &str) -> String {
    let tone = match change.class {
        ChangeClass::Compatible => Style::Good,
        ChangeClass::Breaking => Style::Note,
        ChangeClass::Suspicious => Style::Error,
    };
    let label = output.paint(tone, &format!("{:<10}", change.class));
    let name = item_name(change);
    let name = escape_inline(&name);
    let gap = " ".repeat(width.saturating_sub(display_width(&name)));
    format!("{label}  {name}{gap}  {}", escape_inline(text))
}

/// Returns `server.tool`, or the name of the server.
fn item_name(change: &PinChange) -> String {
    match &change.tool {
        Some(tool) => format!("{}.{tool}", change.server),
        None => change.server.clone(),
    }
}

/// Returns the first descriptions of the changes, the most severe first, and the number of others.
fn summarize(changes: &[PinChange]) -> String {
    let descriptions = changes.iter().map(|change| change.description.trim_start_matches('/'));
    let mut parts: Vec<String> =
        descriptions.take(MAX_SUMMARY_CHANGES).map(str::to_owned).collect();
    if let more @ 1.. = changes.len().saturating_sub(MAX_SUMMARY_CHANGES) {
        parts.push(format!("and {more} more (`--diff` prints all)"));
    }
    parts.join("; ")
}

/// Returns the numbers of tools that were added, removed and changed.
fn describe_difference(pinned: &Lock, current: &Lock) -> String {
    let old = hashes_by_tool(pinned);
    let new = hashes_by_tool(current);
    let added = new.keys().filter(|name| !old.contains_key(*name)).count();
    let removed = old.keys().filter(|name| !new.contains_key(*name)).count();
    let changed = old
        .iter()
        .filter(|(name, hash)| new.get(*name).is_some_and(|other| other != *hash))
        .count();
    let counts = [(added, "added"), (removed, "removed"), (changed, "changed")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> =
        counts.map(|(count, verb)| format!("{count} tool{} {verb}", plural(*count))).collect();
    if parts.is_empty() { "no tool changed, but a server did".to_owned() } else { parts.join(", ") }
}

fn hashes_by_tool(lock: &Lock) -> BTreeMap<(&str, &str), &str> {
    let mut hashes = BTreeMap::new();
    for (server, pins) in &lock.servers {
        for (name, tool) in &pins.tools {
            hashes.insert((server.as_str(), name.as_str()), tool.hash.as_str());
        }
    }
    hashes
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Returns the old and the new value; texts start shortly before their first difference.
fn diff_lines(change: &PinChange) -> Vec<String> {
    let [before, after] = [&change.before, &change.after].map(|value| {
        let value = value.as_ref()?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    });
    let diff_start = match (&before, &after) {
        (Some(before), Some(after)) => {
            let same = before.chars().zip(after.chars()).take_while(|(left, other)| left == other);
            same.count().saturating_sub(DIFF_CONTEXT_CHARS)
        }
        _ => 0,
    };
    let marked = [("-", before), ("+", after)];
    let lines = marked.into_iter().filter_map(|(sign, text)| Some((sign, text?)));
    lines.map(|(sign, text)| format!("{sign} {}", excerpt(&text, diff_start))).collect()
}

fn excerpt(text: &str, from: usize) -> String {
    let remaining = text.chars().count().saturating_sub(from).saturating_sub(MAX_SHOWN_CHARS);
    let visible: String = text.chars().skip(from).take(MAX_SHOWN_CHARS).collect();
    let opens = if from > 0 { "… " } else { "" };
    match remaining {
        0 => format!("{opens}{visible}"),
        remaining => {
            format!("{opens}{visible} … ({remaining} more characters; `--json` prints all)")
        }
    }
}

/// Warns about servers that were not compared and about packages without a version.
fn print_warnings(output: &mut Output, current: &Lock, unseen: &[&str]) -> Result<(), CliError> {
    for name in unseen {
        let consequence = if current.servers.contains_key(*name) {
            "its pins stay unchanged"
        } else {
            "it is not pinned"
        };
        output.labelled_status(
            Style::Note,
            "warning",
            &format!("server `{name}` is not ready: {consequence}"),
        )?;
    }
    for (name, server) in &current.servers {
        let package = server.package.as_ref().filter(|package| package.version.is_none());
        if let Some(package) = package {
            let fetched = &package.name;
            let text = match package.is_location() {
                true => {
                    format!("server `{name}` runs the current content of `{fetched}` at each start")
                }
                false => {
                    format!("server `{name}` runs the latest version of `{fetched}`; pin a version")
                }
            };
            output.labelled_status(Style::Note, "warning", &text)?;
        }
    }
    Ok(())
}

fn report_check(
    output: &mut Output,
    pinned: &Lock,
    current: &Lock,
    changes: &[PinChange],
    unseen: &[&str],
) -> Result<(), CliError> {
    if changes.is_empty() && unseen.is_empty() {
        return Ok(output.status(&format!("lock verified: {}", describe_counts(current)))?);
    }
    if !changes.is_empty() {
        output.status(&describe_difference(pinned, current))?;
        let hint = "run `innkeeper lock` to accept the changes; `--diff` prints the texts";
        output.labelled_status(Style::Hint, "hint", hint)?;
    }
    Err(CliError::without_message(CliExitCode::Failed))
}

fn write_lock(output: &mut Output, file: &Path, current: &Lock) -> Result<(), CliError> {
    let text = current.to_text().map_err(|error| CliError::cannot_write(file, error))?;
    atomic_file::write(file, &text).map_err(|error| CliError::cannot_write(file, error))?;
    Ok(output.status(&format!("{} pinned in `{}`", describe_counts(current), file.display()))?)
}

fn describe_counts(lock: &Lock) -> String {
    let servers = lock.servers.len();
    let tools = lock.servers.values().map(|server| server.tools.len()).sum::<usize>();
    format!("{tools} tool{} of {servers} server{}", plural(tools), plural(servers))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: &str, after: &str) -> PinChange {
        PinChange {
            server: "one".to_owned(),
            tool: Some("read".to_owned()),
            class: ChangeClass::Suspicious,
            description: "/description: text changed".to_owned(),
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
        let (mut output, out, err) = crate::output::capture::captured_output(false, false);
        print_warnings(&mut output, &lock, &["exact", "never"]).unwrap();
        assert_eq!(out.text(), "");
        insta::assert_snapshot!(err.text(), @r"
        warning: server `exact` is not ready: its pins stay unchanged
        warning: server `never` is not ready: it is not pinned
        warning: server `loose` runs the latest version of `p`; pin a version
        ");
    }

    #[test]
    fn the_summary_has_one_line_for_each_tool_and_the_diff_has_all_changes() {
        let changes: Vec<PinChange> = (0..5).map(|_| change("old", "new")).collect();
        let print = |with_values| {
            let (mut output, out, _) = crate::output::capture::captured_output(false, false);
            print_changes(&mut output, &changes, &[], with_values).unwrap();
            out.text()
        };
        insta::assert_snapshot!(print(false), @"suspicious  one.read  description: text changed; description: text changed; description: text changed; and 2 more (`--diff` prints all)");
        assert_eq!(print(true).matches("- old").count(), 5);
    }

    #[test]
    fn long_strings_are_shown_from_where_they_differ_and_the_rest_is_counted() {
        let same = "x".repeat(1_000);
        let (before, after) = (format!("{same}old"), format!("{same}new{same}"));
        let lines = diff_lines(&change(&before, &after));
        assert_eq!(lines[0], format!("- … {}old", "x".repeat(DIFF_CONTEXT_CHARS)));
        assert!(
            lines[1].starts_with(&format!("+ … {}new", "x".repeat(DIFF_CONTEXT_CHARS))),
            "{}",
            lines[1]
        );
        assert!(lines[1].ends_with("… (663 more characters; `--json` prints all)"), "{}", lines[1]);
        assert_eq!(excerpt(&"y".repeat(MAX_SHOWN_CHARS), 0), "y".repeat(MAX_SHOWN_CHARS));
    }
}
