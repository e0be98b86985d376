//! `golden accept`: takes the changed result of a replay as the golden result.

use std::time::SystemTime;

use innkeeper_agent::golden::{Acceptance, Golden, replay};
use serde_json::json;

use super::author::author;
use super::files;
use super::judge::{judge, result_differences};
use super::plural;
use crate::atomic_file;
use crate::cli::AcceptArgs;
use crate::context::CommandContext;
use crate::exit::CliError;
use crate::output::escape_inline;
use crate::timestamp::format_second_rfc3339;

pub(super) async fn run(context: &mut CommandContext, args: AcceptArgs) -> Result<(), CliError> {
    let why = args.why.trim();
    if why.is_empty() {
        return Err(
            CliError::usage("`--why` is empty").with_hint("say why the new result is right")
        );
    }
    let who = author(args.who.as_deref(), &context.environment)?;
    let file = files::read(&args.file)?;
    let name = file.name();
    let rules = file.rules()?;
    let replayed = replay(&file.golden).await.map_err(|error| {
        CliError::failure(format!("`{name}` does not replay, so it has no result to accept"))
            .with_source(error)
            .with_hint("record the run again")
    })?;
    let changes = result_differences(&file.golden, &replayed.golden);
    let output = &mut context.output;
    // Some rules are about the run alone: no golden result makes it keep them.
    let judgement = judge(&replayed.golden, &replayed.golden, rules.as_ref());
    if !judgement.passed {
        let message = format!("`{name}` would still not pass: {}", judgement.report);
        return Err(CliError::failure(message).with_hint("change the rules of the golden"));
    }
    if changes.is_empty() {
        if output.is_json() {
            return Ok(output.print_json(&json!({"file": name, "accepted": false}))?);
        }
        return Ok(output.status(&format!("`{name}` has the same result: nothing to accept"))?);
    }
    let acceptance =
        Acceptance { who, when: format_second_rfc3339(SystemTime::now()), why: why.to_owned() };
    let golden = accepted(replayed.golden, acceptance.clone());
    let cannot = || CliError::failure(format!("cannot write `{name}`"));
    let text = golden.to_json().map_err(|error| cannot().with_source(error))?;
    atomic_file::write_private(&args.file, &text).map_err(|error| cannot().with_source(error))?;
    let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
    if output.is_json() {
        let report = json!({
            "file": name,
            "accepted": true,
            "acceptance": acceptance,
            "changes": lines,
        });
        return Ok(output.print_json(&report)?);
    }
    for line in &lines {
        output.print_message(&escape_inline(line))?;
    }
    let count = lines.len();
    Ok(output.status(&format!("accepted {count} change{} in `{name}`", plural(count)))?)
}

/// Returns the golden of a replay, signed.
fn accepted(replayed: Golden, acceptance: Acceptance) -> Golden {
    let mut golden = replayed;
    golden.accepted.push(acceptance);
    golden
}
