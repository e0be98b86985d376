//! `golden diff`: compares recorded runs side by side.

use innkeeper_agent::golden::{Difference, Golden, differences, is_varying_in_output};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::files::{self, GoldenFile};
use super::plural;
use super::run_view::{RunView, duration_text, millis};
use crate::cli::DiffArgs;
use crate::exit::CliError;
use crate::output::{Output, Style, Table, escape_inline};

/// Maximum number of differences between two chains of calls.
const MAX_DIFFERENCES: usize = 100;

/// Maximum number of characters in a cell; `--json` prints the whole text.
const MAX_CELL_CHARS: usize = 60;

/// Members of a call that differ between any two runs and say nothing: the ids that a provider chose.
const ID_MEMBERS: [&str; 2] = ["tool_call_id", "visible_results"];

pub(super) fn run(args: &DiffArgs, output: &mut Output) -> Result<(), CliError> {
    let goldens: Vec<GoldenFile> =
        args.files.iter().map(|file| files::read(file)).collect::<Result<_, _>>()?;
    let columns: Vec<RunColumn> = goldens.iter().map(RunColumn::new).collect::<Result<_, _>>()?;
    let comparisons = comparisons(&goldens)?;
    if output.is_json() {
        let list: Vec<_> = comparisons.iter().map(Comparison::to_json).collect();
        return Ok(output.print_json(&json!({"goldens": columns, "differences": list}))?);
    }
    output.print_table(&table(&columns))?;
    for comparison in &comparisons {
        print_comparison(comparison, output)?;
    }
    Ok(())
}

#[derive(Debug, Serialize)]
struct RunColumn {
    file: String,
    test_name: String,
    provider: String,
    model: String,
    #[serde(flatten)]
    run: RunFacts,
}

/// What a run did and how it ended.
#[derive(Debug, Serialize)]
struct RunFacts {
    success: bool,
    error: Option<String>,
    iterations: u32,
    calls: Vec<String>,
    failed_calls: usize,
    total_tokens: u64,
    ms: u64,
    final_result: Option<String>,
}

impl RunColumn {
    fn new(file: &GoldenFile) -> Result<Self, CliError> {
        let run = RunView::from_file(file)?;
        let golden = &file.golden;
        Ok(Self {
            file: file.name(),
            test_name: golden.test_name.clone(),
            provider: golden.input.provider.clone(),
            model: golden.input.model.clone(),
            run: RunFacts::new(run),
        })
    }
}

impl RunFacts {
    fn new(run: RunView) -> Self {
        let metadata = &run.execution_metadata;
        Self {
            success: run.success,
            error: run.failure().map(str::to_owned),
            iterations: metadata.total_iterations,
            calls: run.tool_chain.iter().map(|call| call.tool_name.clone()).collect(),
            failed_calls: run.failed_calls(),
            total_tokens: metadata.token_usage.total_tokens,
            ms: millis(metadata.total_execution_time),
            final_result: run.final_result,
        }
    }

    fn outcome(&self) -> String {
        match &self.error {
            None => "success".to_owned(),
            Some(error) => format!("failure: {error}"),
        }
    }
}

type CellText = fn(&RunColumn) -> String;

fn table(columns: &[RunColumn]) -> Table {
    let headings = columns.iter().map(|column| column.file.clone());
    let mut table = Table::new(std::iter::once(String::new()).chain(headings));
    let rows: [(&str, CellText); 10] = [
        ("test name", |column| column.test_name.clone()),
        ("provider", |column| column.provider.clone()),
        ("model", |column| column.model.clone()),
        ("result", |column| column.run.outcome()),
        ("iterations", |column| column.run.iterations.to_string()),
        ("calls", |column| column.run.calls.join(", ")),
        ("failed calls", |column| column.run.failed_calls.to_string()),
        ("tokens", |column| column.run.total_tokens.to_string()),
        ("time", |column| duration_text(column.run.ms)),
        ("final text", |column| column.run.final_result.clone().unwrap_or_default()),
    ];
    for (label, cell) in rows {
        let cells = columns.iter().map(|column| cell_text(&cell(column)));
        table.add_row(std::iter::once(label.to_owned()).chain(cells));
    }
    table
}

/// Returns a shortened text, or `-` for none. The table escapes it.
fn cell_text(text: &str) -> String {
    if text.is_empty() {
        return "-".to_owned();
    }
    match text.char_indices().nth(MAX_CELL_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The differences between the calls of two runs.
#[derive(Debug)]
struct Comparison {
    first: String,
    other: String,
    differences: Vec<Difference>,
    /// The differences between the servers' questions with their answers.
    question_differences: Vec<Difference>,
}

impl Comparison {
    fn to_json(&self) -> serde_json::Value {
        json!({
            "first": self.first,
            "other": self.other,
            "tool_chain": list_json(&self.differences),
            "questions": list_json(&self.question_differences),
        })
    }
}

fn list_json(differences: &[Difference]) -> Vec<serde_json::Value> {
    let list = differences.iter().map(|Difference { path, expected, actual }| {
        json!({"path": path, "expected": expected, "actual": actual})
    });
    list.collect()
}

/// Compares each run with the first one.
fn comparisons(goldens: &[GoldenFile]) -> Result<Vec<Comparison>, CliError> {
    let [first, others @ ..] = goldens else { return Ok(Vec::new()) };
    others.iter().map(|other| compare_with(first, other)).collect()
}

fn compare_with(first: &GoldenFile, other: &GoldenFile) -> Result<Comparison, CliError> {
    let differences = chain_differences(&first.golden, &other.golden)
        .map_err(|error| CliError::usage("cannot compare the calls").with_source(error))?;
    let question_differences = question_differences(&first.golden, &other.golden)
        .map_err(|error| CliError::usage("cannot compare the questions").with_source(error))?;
    let first = first.name();
    let other = other.name();
    Ok(Comparison { first, other, differences, question_differences })
}

/// Returns the differences between the questions of servers, except for the metadata of requests.
fn question_differences(
    first: &Golden,
    other: &Golden,
) -> Result<Vec<Difference>, serde_json::Error> {
    let expected = to_raw_value(&first.questions)?;
    let actual = to_raw_value(&other.questions)?;
    Ok(differences(&expected, &actual, &is_metadata, MAX_DIFFERENCES))
}

fn is_metadata(path: &str) -> bool {
    path.split('/').skip(2).eq(["params", "_meta"])
}

/// Returns the differences between the calls of two runs, except for times and ids.
fn chain_differences(first: &Golden, other: &Golden) -> Result<Vec<Difference>, serde_json::Error> {
    let expected = tool_chain(first)?;
    let actual = tool_chain(other)?;
    Ok(differences(&expected, &actual, &is_ignored_in_chain, MAX_DIFFERENCES))
}

fn is_ignored_in_chain(path: &str) -> bool {
    is_varying_in_output(&format!("/tool_chain{path}"))
        || path.rsplit('/').next().is_some_and(|member| ID_MEMBERS.contains(&member))
}

fn tool_chain(golden: &Golden) -> Result<Box<RawValue>, serde_json::Error> {
    #[derive(Deserialize)]
    struct ChainOnly {
        tool_chain: Box<RawValue>,
    }
    let output: ChainOnly = serde_json::from_str(golden.golden_output.get())?;
    Ok(output.tool_chain)
}

fn print_comparison(comparison: &Comparison, output: &mut Output) -> Result<(), CliError> {
    print_differences(comparison, "calls", &comparison.differences, output)?;
    match comparison.question_differences.as_slice() {
        [] => Ok(()),
        differences => print_differences(comparison, "questions", differences, output),
    }
}

fn print_differences(
    comparison: &Comparison,
    subject: &str,
    differences: &[Difference],
    output: &mut Output,
) -> Result<(), CliError> {
    let count = differences.len();
    let found = match count {
        0 => format!("the same {subject}"),
        MAX_DIFFERENCES => format!("at least {count} differences in the {subject}"),
        _ => format!("{count} difference{} in the {subject}", plural(count)),
    };
    let Comparison { first, other, .. } = comparison;
    let heading = format!("{} against {}: {found}", escape_inline(other), escape_inline(first));
    let heading = output.paint(Style::Strong, &heading);
    output.print_data(&format!("\n{heading}"))?;
    for difference in differences {
        output.print_message(&format!("  {}", escape_inline(&difference.to_string())))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use innkeeper_agent::golden::QuestionRecord;

    use super::super::samples::sample;
    use super::*;
    use crate::output::capture::captured_output;

    fn file(name: &str, golden: Golden) -> GoldenFile {
        GoldenFile { path: name.into(), text: String::new(), golden }
    }

    fn other_model() -> Golden {
        let mut golden = sample();
        golden.input.provider = "anthropic".to_owned();
        golden.input.model = "claude-opus-5".to_owned();
        let text = golden.golden_output.get();
        let text = text.replacen("\"q\":\"a\"", "\"q\":\"b\"", 1);
        let text = text.replace("\"c1\"", "\"toolu_1\"");
        golden.golden_output = RawValue::from_string(text).unwrap();
        golden
    }

    #[test]
    fn runs_stand_side_by_side_and_their_calls_differ_by_field() {
        let goldens = [file("a.json", sample()), file("b.json", other_model())];
        let columns: Vec<_> = goldens.iter().map(|file| RunColumn::new(file).unwrap()).collect();
        let (mut output, out, _) = captured_output(false, false);
        output.print_table(&table(&columns)).unwrap();
        for comparison in comparisons(&goldens).unwrap() {
            print_comparison(&comparison, &mut output).unwrap();
        }
        insta::assert_snapshot!(out.text());
    }

    #[test]
    fn runs_with_the_same_calls_say_so() {
        let goldens = [file("a.json", sample()), file("b.json", sample())];
        let comparison = comparisons(&goldens).unwrap().remove(0);
        let (mut output, out, _) = captured_output(false, false);
        print_comparison(&comparison, &mut output).unwrap();
        assert_eq!(out.text(), "\nb.json against a.json: the same calls\n");
    }

    #[test]
    fn another_answer_to_a_server_is_named() {
        let question = |answer: &str| QuestionRecord {
            server: "mail".to_owned(),
            method: "elicitation/create".to_owned(),
            params: to_raw_value(&json!({"message": "Send it?", "_meta": {"n": answer}})).unwrap(),
            answer: Some(to_raw_value(&json!({"action": answer})).unwrap()),
            call: Some(0),
        };
        let [accepted, declined] = ["accept", "decline"]
            .map(|answer| Golden { questions: vec![question(answer)], ..sample() });
        let goldens = [file("a.json", accepted), file("b.json", declined)];
        let comparison = comparisons(&goldens).unwrap().remove(0);
        let (mut output, out, err) = captured_output(false, false);
        print_comparison(&comparison, &mut output).unwrap();
        assert!(out.text().contains("b.json against a.json: 1 difference in the questions"));
        let text = out.text() + &err.text();
        assert!(text.contains("`/0/answer/action` was \"accept\", is now \"decline\""), "{text}");
        assert_eq!(comparison.to_json()["questions"][0]["path"], "/0/answer/action");
    }

    #[test]
    fn a_long_cell_is_shortened() {
        assert_eq!(cell_text(&"ä".repeat(61)), format!("{}…", "ä".repeat(60)));
        assert_eq!(cell_text(""), "-");
    }
}
