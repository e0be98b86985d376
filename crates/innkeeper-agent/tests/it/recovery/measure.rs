//! The measurement of `cargo xtask bench-repair`.
//!
//! Step one writes the malformed responses for the published parsers; step two judges the calls of
//! those parsers and of ours.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use innkeeper_toolcall::{Format, Json, ResolvedCall};
use serde_json::{Value, json};

use super::call_syntax::CallSyntax;
use super::ground_truth::{BenchmarkEntry, CallVerdict, judge};
use super::harness::{AgentHarness, parse_calls};
use super::mistake::{MistakeCase, ModelMistake};
use super::{sample_entries, seeded_case};

/// The variables that `cargo xtask bench-repair` sets; the first is the directory of the files.
const FOLDER_VAR: &str = "INNKEEPER_BENCH_REPAIR";
const ENTRIES_VAR: &str = "INNKEEPER_BENCH_REPAIR_ENTRIES";
const SEED_VAR: &str = "INNKEEPER_BENCH_REPAIR_SEED";

/// The output files of the published parsers.
const PEER_FILES: [&str; 2] = ["tool-parser", "ai-sdk-tool-parser"];

struct MeasureArgs {
    folder: PathBuf,
    entries: Vec<BenchmarkEntry>,
    seed: u64,
}

impl MeasureArgs {
    fn from_env() -> Self {
        let variable =
            |name: &str| std::env::var_os(name).expect("`cargo xtask bench-repair` sets it");
        let number = |name: &str| variable(name).to_str().unwrap().parse::<u64>().unwrap();
        let (seed, count) = (number(SEED_VAR), number(ENTRIES_VAR));
        let entries = sample_entries(usize::try_from(count).unwrap(), seed);
        Self { folder: variable(FOLDER_VAR).into(), entries, seed }
    }

    /// Returns every case in a fixed order.
    fn cases(&self) -> impl Iterator<Item = (usize, CallSyntax, ModelMistake, MistakeCase)> {
        let positions =
            (0..self.entries.len()).flat_map(|at| CallSyntax::ALL.map(|form| (at, form)));
        let positions =
            positions.flat_map(|(at, form)| ModelMistake::ALL.map(|mistake| (at, form, mistake)));
        positions.filter_map(|(at, form, mistake)| {
            Some((at, form, mistake, seeded_case(&self.entries[at], form, mistake, self.seed)?))
        })
    }
}

#[test]
#[ignore = "a step of `cargo xtask bench-repair`"]
fn step_one_writes_the_answers_down() {
    let args = MeasureArgs::from_env();
    let create = |name: &str| fs::File::create(args.folder.join(name)).unwrap();
    let mut file = create("tools.jsonl");
    for entry in &args.entries {
        let tools = entry.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "parameters": tool.input_schema})
        });
        writeln!(file, "{}", tools.collect::<Value>()).unwrap();
    }
    let mut file = create("cases.jsonl");
    for (entry, form, _, case) in args.cases() {
        let line = json!({"entry": entry, "form": form.name(), "text": case.text});
        writeln!(file, "{line}").unwrap();
    }
}

/// Counts of one mistake and syntax; the keys are those of the result file.
type OutcomeCounts = BTreeMap<&'static str, usize>;

#[tokio::test(start_paused = true)]
#[ignore = "a step of `cargo xtask bench-repair`"]
async fn step_two_judges_what_was_made_of_them() {
    let args = MeasureArgs::from_env();
    let peer_results = PEER_FILES.map(|peer| {
        let text = fs::read_to_string(args.folder.join(peer)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    });
    let mut rows: BTreeMap<[usize; 2], OutcomeCounts> = BTreeMap::new();
    let mut harness = None;
    for (number, (at, form, mistake, case)) in args.cases().enumerate() {
        let entry = &args.entries[at];
        if harness.as_ref().is_none_or(|(index, _)| *index != at) {
            harness = Some((at, AgentHarness::new(entry)));
        }
        let (_, harness) = harness.as_mut().unwrap();
        let position =
            |list: &[&str], name: &str| list.iter().position(|item| *item == name).unwrap();
        let slips = ModelMistake::ALL.map(ModelMistake::name);
        let forms = CallSyntax::ALL.map(CallSyntax::name);
        let row = rows
            .entry([position(&slips, mistake.name()), position(&forms, form.name())])
            .or_default();
        let mut count =
            |key: &'static str, is: bool| *row.entry(key).or_default() += usize::from(is);
        count("n", true);
        let detected = judge(&parse_calls(entry, &case, Format::Detect), &case.expected_calls);
        let declared = judge(&parse_calls(entry, &case, form.format()), &case.expected_calls);
        count("alone", detected == CallVerdict::Right);
        count("told", declared == CallVerdict::Right);
        count("told_wrong", declared == CallVerdict::Wrong);
        count(harness.run_case(&case).await.name(), true);
        for ((results, keys), peer) in peer_results.iter().zip(PEER_COUNT_KEYS).zip(PEER_FILES) {
            let line = results.get(number).unwrap_or_else(|| panic!("`{peer}` has too few lines"));
            let Value::Array(calls) = line else { continue };
            let verdict = judge(&valid_calls(entry, calls), &case.expected_calls);
            let [n, right, wrong, innkeeper] = keys;
            count(n, true);
            count(right, verdict == CallVerdict::Right);
            count(wrong, verdict == CallVerdict::Wrong);
            count(innkeeper, declared == CallVerdict::Right);
        }
    }
    let rows = rows.into_iter().map(|([mistake, form], counts)| {
        json!({"slip": ModelMistake::ALL[mistake].name(), "form": CallSyntax::ALL[form].name(), "counts": counts})
    });
    let result = rows.collect::<Value>().to_string();
    fs::write(args.folder.join("result.json"), result).unwrap();
}

/// The count keys of each published parser; the last counts our parser on the same responses.
const PEER_COUNT_KEYS: [[&str; 4]; 2] = [
    ["crate_n", "crate", "crate_wrong", "crate_ours"],
    ["package_n", "package", "package_wrong", "package_ours"],
];

/// Returns the calls of a published parser if all match their schemas; an application would run no
/// others.
fn valid_calls(entry: &BenchmarkEntry, calls: &[Value]) -> Vec<(String, Value)> {
    let call = |call: &Value| {
        let name = call[0].as_str()?.to_owned();
        let arguments: Value = serde_json::from_str(call[1].as_str()?).ok()?;
        let json = Json::from(&arguments);
        let resolved = ResolvedCall { name: name.clone(), arguments: json, repairs: Vec::new() };
        let fits = entry
            .tool_validator
            .violations(&resolved)
            .is_ok_and(|violations| violations.is_empty());
        fits.then_some((name, arguments))
    };
    calls.iter().map(call).collect::<Option<_>>().unwrap_or_default()
}
