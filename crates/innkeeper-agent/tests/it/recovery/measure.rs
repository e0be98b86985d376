//! The measurement behind `cargo xtask recovery`: writes the answers down for the published parsers,
//! then judges what they and ours made of them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use innkeeper_toolcall::{Call, Format, Json};
use serde_json::{Value, json};

use super::form::Form;
use super::ours::{Room, read};
use super::slip::{Case, Slip};
use super::truth::{Entry, Verdict, judge};
use super::{case, sample};

/// Where the chore wants the files; where it is not said, there is nothing to measure.
const FOLDER: &str = "INNKEEPER_RECOVERY";
const ENTRIES: &str = "INNKEEPER_RECOVERY_ENTRIES";
const SEED: &str = "INNKEEPER_RECOVERY_SEED";

/// The published parsers, by the file of what they made of the answers.
const PEERS: [&str; 2] = ["tool-parser", "ai-sdk-tool-parser"];

struct Wish {
    folder: PathBuf,
    entries: Vec<Entry>,
    seed: u64,
}

impl Wish {
    fn new() -> Self {
        let word = |name: &str| std::env::var_os(name).expect("`cargo xtask recovery` sets it");
        let number = |name: &str| word(name).to_str().unwrap().parse::<u64>().unwrap();
        let (seed, count) = (number(SEED), number(ENTRIES));
        let entries = sample(usize::try_from(count).unwrap(), seed);
        Self { folder: word(FOLDER).into(), entries, seed }
    }

    /// Every answer, in one order.
    fn cases(&self) -> impl Iterator<Item = (usize, Form, Slip, Case)> {
        let places = (0..self.entries.len()).flat_map(|at| Form::ALL.map(|form| (at, form)));
        let places = places.flat_map(|(at, form)| Slip::ALL.map(|slip| (at, form, slip)));
        places.filter_map(|(at, form, slip)| {
            Some((at, form, slip, case(&self.entries[at], form, slip, self.seed)?))
        })
    }
}

#[test]
#[ignore = "a step of `cargo xtask recovery`"]
fn step_one_writes_the_answers_down() {
    let wish = Wish::new();
    let create = |name: &str| fs::File::create(wish.folder.join(name)).unwrap();
    let mut file = create("tools.jsonl");
    for entry in &wish.entries {
        let tools = entry.tools.iter().map(|it| {
            json!({"name": it.name, "description": it.description, "parameters": it.input_schema})
        });
        writeln!(file, "{}", tools.collect::<Value>()).unwrap();
    }
    let mut file = create("cases.jsonl");
    for (entry, form, _, case) in wish.cases() {
        let line = json!({"entry": entry, "form": form.name(), "text": case.text});
        writeln!(file, "{line}").unwrap();
    }
}

/// What came of the answers of one kind. The names of the counts are those of the result.
type Counts = BTreeMap<&'static str, usize>;

#[tokio::test(start_paused = true)]
#[ignore = "a step of `cargo xtask recovery`"]
async fn step_two_judges_what_was_made_of_them() {
    let wish = Wish::new();
    let heard = PEERS.map(|peer| {
        let text = fs::read_to_string(wish.folder.join(peer)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    });
    let mut rows: BTreeMap<[usize; 2], Counts> = BTreeMap::new();
    let mut room = None;
    for (number, (at, form, slip, case)) in wish.cases().enumerate() {
        let entry = &wish.entries[at];
        if room.as_ref().is_none_or(|(own, _)| *own != at) {
            room = Some((at, Room::new(entry)));
        }
        let (_, room) = room.as_mut().unwrap();
        let place = |list: &[&str], name: &str| list.iter().position(|it| *it == name).unwrap();
        let slips = Slip::ALL.map(Slip::name);
        let forms = Form::ALL.map(Form::name);
        let row = rows.entry([place(&slips, slip.name()), place(&forms, form.name())]).or_default();
        let mut count =
            |what: &'static str, is: bool| *row.entry(what).or_default() += usize::from(is);
        count("n", true);
        let alone = judge(&read(entry, &case, Format::Detect), &case.truths);
        let told = judge(&read(entry, &case, form.format()), &case.truths);
        count("alone", alone == Verdict::Right);
        count("told", told == Verdict::Right);
        count("told_wrong", told == Verdict::Wrong);
        count(room.take(&case).await.name(), true);
        for ((heard, keys), peer) in heard.iter().zip(KEYS).zip(PEERS) {
            let line = heard.get(number).unwrap_or_else(|| panic!("`{peer}` has too few lines"));
            let Value::Array(calls) = line else { continue };
            let verdict = judge(&fitting(entry, calls), &case.truths);
            let [n, right, wrong, ours] = keys;
            count(n, true);
            count(right, verdict == Verdict::Right);
            count(wrong, verdict == Verdict::Wrong);
            count(ours, told == Verdict::Right);
        }
    }
    let rows = rows.into_iter().map(|([slip, form], counts)| {
        json!({"slip": Slip::ALL[slip].name(), "form": Form::ALL[form].name(), "counts": counts})
    });
    let result = rows.collect::<Value>().to_string();
    fs::write(wish.folder.join("result.json"), result).unwrap();
}

/// What is counted of each published parser; last, what ours made of the same answers.
const KEYS: [[&str; 4]; 2] = [
    ["crate_n", "crate", "crate_wrong", "crate_ours"],
    ["package_n", "package", "package_wrong", "package_ours"],
];

/// The calls of a published parser, if all fit the schemas of their tools: an application would run
/// no others.
fn fitting(entry: &Entry, calls: &[Value]) -> Vec<(String, Value)> {
    let call = |call: &Value| {
        let name = call[0].as_str()?.to_owned();
        let arguments: Value = serde_json::from_str(call[1].as_str()?).ok()?;
        let json = Json::from(&arguments);
        let made = Call { name: name.clone(), arguments: json, repairs: Vec::new() };
        let fits = entry.toolbox.violations(&made).is_ok_and(|found| found.is_empty());
        fits.then_some((name, arguments))
    };
    calls.iter().map(call).collect::<Option<_>>().unwrap_or_default()
}
