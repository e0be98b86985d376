//! `golden replay`: runs goldens again without a network, and reports every change of the result.

use innkeeper_agent::golden::{Golden, Replay, ReplayError, Rules, replay};
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::files::{GoldenFile, GoldenFiles};
use super::judge::judge;
use super::{junit, plural};
use crate::atomic_file;
use crate::cli::ReplayArgs;
use crate::error_chain::error_chain;
use crate::exit::{CliError, CliExitCode};
use crate::output::{Output, Style, escape_inline};

/// Width of a verdict in front of a name.
const VERDICT_WIDTH: usize = 7;

#[derive(Debug, Serialize)]
pub(super) struct ReplayedGolden {
    pub(super) file: String,
    pub(super) test_name: String,
    pub(super) verdict: Verdict,
    pub(super) ms: u64,
    /// What changed, or why there is no replay; one line each.
    pub(super) report: String,
}

/// What a replay shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// The result is the same.
    Ok,
    /// The result is another one.
    Changed,
    /// The golden does not replay.
    Failed,
}

impl Verdict {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Changed => "changed",
            Self::Failed => "failed",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Ok => Style::Good,
            Self::Changed => Style::Note,
            Self::Failed => Style::Error,
        }
    }
}

pub(super) async fn run(args: &ReplayArgs, output: &mut Output) -> Result<(), CliError> {
    let mut files = GoldenFiles::find(&args.paths)?;
    let mut replayed = Vec::new();
    let mut foreign = 0;
    for file in files.by_ref() {
        let file = file?;
        if file.golden.input.agent.is_some() {
            foreign += 1;
            continue;
        }
        let golden = replay_file(&file).await?;
        if !output.is_json() {
            print_line(&golden, output)?;
        }
        replayed.push(golden);
    }
    files.report_skipped(output)?;
    if foreign > 0 {
        let text = format!(
            "skipped {foreign} recording{} of other programs' agents: replay each with \
             `innkeeper replay FILE -- AGENT`",
            plural(foreign)
        );
        output.labelled_status(Style::Note, "note", &text)?;
    }
    if let Some(path) = &args.junit {
        atomic_file::write(path, &junit::report(&replayed))
            .map_err(|error| CliError::cannot_write(path, error))?;
    }
    if output.is_json() {
        output.print_json(&summary_json(&replayed))?;
    } else {
        print_reports(&replayed, output)?;
    }
    if replayed.is_empty() {
        let paths: Vec<_> = args.paths.iter().map(|path| format!("`{}`", path.display())).collect();
        let message = format!("nothing was judged: {} has no goldens", paths.join(", "));
        return Err(CliError::failure(message).with_hint("name the directory of your goldens"));
    }
    match replayed.iter().all(|golden| golden.verdict == Verdict::Ok) {
        true => Ok(()),
        false => Err(CliError::without_message(CliExitCode::Failed)),
    }
}

/// Replays one golden and judges its result.
///
/// # Errors
///
/// The rules next to the golden are invalid: that says nothing about the run.
async fn replay_file(file: &GoldenFile) -> Result<ReplayedGolden, CliError> {
    let rules = file.rules()?;
    let started = Instant::now();
    let replayed = replay(&file.golden).await.and_then(Replay::require_complete);
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (verdict, report) = match replayed {
        Ok(replayed) => compare(&file.golden, &replayed.golden, rules.as_ref()),
        Err(error) => (Verdict::Failed, failure_text(&error)),
    };
    let test_name = file.golden.test_name.clone();
    Ok(ReplayedGolden { file: file.name(), test_name, verdict, ms, report })
}

fn compare(golden: &Golden, replayed: &Golden, rules: Option<&Rules>) -> (Verdict, String) {
    let judgement = judge(golden, replayed, rules);
    let verdict = if judgement.passed { Verdict::Ok } else { Verdict::Changed };
    (verdict, judgement.report)
}

/// Returns why a golden does not replay, with all causes.
pub(super) fn failure_text(error: &ReplayError) -> String {
    error_chain(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn print_line(golden: &ReplayedGolden, output: &mut Output) -> Result<(), CliError> {
    let verdict = format!("{:<VERDICT_WIDTH$}", golden.verdict.as_str());
    let verdict = output.paint(golden.verdict.style(), &verdict);
    let name = escape_inline(&golden.test_name);
    Ok(output.print_data(&format!("{verdict}  {name}  {} ms", golden.ms))?)
}

/// Prints what changed, and a summary on stderr.
fn print_reports(replayed: &[ReplayedGolden], output: &mut Output) -> Result<(), CliError> {
    for golden in replayed.iter().filter(|golden| golden.verdict != Verdict::Ok) {
        let heading = format!("{}: {}", golden.file, golden.verdict.as_str());
        let heading = output.paint(Style::Strong, &escape_inline(&heading));
        output.print_data(&format!("\n{heading}"))?;
        for line in golden.report.lines() {
            output.print_message(&format!("  {}", escape_inline(line)))?;
        }
    }
    let [ok, changed, failed] =
        [Verdict::Ok, Verdict::Changed, Verdict::Failed].map(|verdict| count(replayed, verdict));
    let all = replayed.len();
    if all > 0 {
        let text =
            format!("{all} golden{}: {ok} ok, {changed} changed, {failed} failed", plural(all));
        output.status(&text)?;
    }
    if changed > 0 {
        let hint = "if a change is right, run `innkeeper golden accept FILE --why TEXT`";
        output.labelled_status(Style::Hint, "hint", hint)?;
    }
    if failed > 0 {
        let hint = "a golden that does not replay needs a new recording";
        output.labelled_status(Style::Hint, "hint", hint)?;
    }
    Ok(())
}

pub(super) fn count(replayed: &[ReplayedGolden], verdict: Verdict) -> usize {
    replayed.iter().filter(|golden| golden.verdict == verdict).count()
}

fn summary_json(replayed: &[ReplayedGolden]) -> serde_json::Value {
    json!({
        "goldens": replayed,
        "ok": count(replayed, Verdict::Ok),
        "changed": count(replayed, Verdict::Changed),
        "failed": count(replayed, Verdict::Failed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture::captured_output;

    #[test]
    fn the_reports_of_changed_and_failed_goldens_follow_the_lines() {
        let golden = |test_name: &str, verdict, report: &str| ReplayedGolden {
            file: format!("goldens/{test_name}.json"),
            test_name: test_name.to_owned(),
            verdict,
            ms: 3,
            report: report.to_owned(),
        };
        let replayed = [
            golden("one", Verdict::Ok, ""),
            golden("two\u{1b}[2J", Verdict::Changed, "`/a` was 1, is now 2\n`/b` is new: \u{1b}"),
            golden("three", Verdict::Failed, "no recording answers request 2"),
        ];
        let (mut output, out, err) = captured_output(false, false);
        for golden in &replayed {
            print_line(golden, &mut output).unwrap();
        }
        print_reports(&replayed, &mut output).unwrap();
        insta::assert_snapshot!(out.text());
        insta::assert_snapshot!(err.text(), @r"
        3 goldens: 1 ok, 1 changed, 1 failed
        hint: if a change is right, run `innkeeper golden accept FILE --why TEXT`
        hint: a golden that does not replay needs a new recording
        ");
    }
}
