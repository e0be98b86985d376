//! `replay` judges goldens, `accept` takes over a changed result, `from-trace` makes new goldens.

use std::fs;

use serde_json::{Value, json};

use super::{BROKEN, Finished, Goldens, NOTES, with_other_question, with_other_result};
use crate::program::run;

#[test]
fn a_golden_with_the_same_result_is_ok() {
    let goldens = Goldens::new([("notes.json", NOTES), ("broken.json", BROKEN)]);
    let replayed = goldens.run(&["replay", "."]).succeeds();
    let stdout = replayed.stdout();
    let lines: Vec<Vec<&str>> =
        stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..2], ["ok", "broken_note"]);
    assert_eq!(lines[1][..2], ["ok", "notes"]);
    assert_eq!(lines[1][3], "ms");
    assert_eq!(replayed.stderr(), "2 goldens: 2 ok, 0 changed, 0 failed\n");
}

#[test]
fn a_changed_result_and_a_run_without_a_recording_end_with_1() {
    let goldens = Goldens::new([
        ("a.json", NOTES),
        ("b.json", &with_other_result(NOTES)),
        ("c.json", &with_other_question(NOTES)),
    ]);
    let summary = "3 goldens: 1 ok, 1 changed, 1 failed";
    let replayed = goldens.run(&["replay", "a.json", "b.json", "c.json"]).fails(1, &[summary]);
    let stdout = replayed.stdout();
    let change = "`/final_result`: expected \"Formerly: Both are there.\", got \"Both are there.\"";
    assert!(stdout.contains("\nb.json: changed\n") && stdout.contains(change), "{stdout}");
    assert!(stdout.contains("\nc.json: failed\n  no recording answers request 1"), "{stdout}");
    assert!(stdout.contains("was \"Look.\", is now \"Search.\""), "{stdout}");
    let json = goldens.run(&["replay", ".", "--json"]).fails(1, &[]).json();
    let verdicts: Vec<&Value> =
        json["goldens"].as_array().unwrap().iter().map(|golden| &golden["verdict"]).collect();
    assert_eq!(verdicts, ["ok", "changed", "failed"]);
    assert_eq!(json["changed"], 1);
}

#[test]
fn without_goldens_nothing_was_judged_and_that_is_a_failure() {
    let goldens = Goldens::new([("tools.json", "{}")]);
    let message = "error: nothing was judged: `.` has no goldens";
    goldens.run(&["replay", "."]).fails(1, &[message, "skipped 1 file"]);
    let json = goldens.run(&["replay", ".", "--json"]).fails(1, &[message]).json();
    assert_eq!(json["goldens"], json!([]));
}

#[test]
fn the_junit_report_has_a_case_for_each_golden() {
    let named = NOTES.replace("\"test_name\": \"notes\"", "\"test_name\": \"a<b>\\u001b&\"");
    let goldens = Goldens::new([("a.json", &named), ("b.json", &with_other_result(NOTES))]);
    goldens.run(&["replay", ".", "--junit", "report.xml"]).fails(1, &[]);
    let xml = goldens.read("report.xml");
    for part in [
        "tests=\"2\" failures=\"1\"",
        "<testcase name=\"a&lt;b&gt;\\u{1b}&amp;\" classname=\"golden\"",
        "<failure type=\"changed\" message=\"",
        "`/final_result`: expected &quot;Formerly: ",
    ] {
        assert!(xml.contains(part), "{part} in {xml}");
    }
    let nowhere = goldens.run(&["replay", "a.json", "--junit", "missing/report.xml"]);
    nowhere.fails(1, &["cannot write `missing/report.xml`"]);
}

#[test]
fn accept_takes_over_the_new_result_with_its_reason() {
    let goldens = Goldens::new([("notes.json", &with_other_result(NOTES))]);
    let accept = ["accept", "notes.json", "--why", "shorter", "--who", "ada"];
    let accepted = goldens.run(&accept).succeeds();
    assert!(accepted.stdout().contains("Formerly: Both are there."), "{}", accepted.stdout());
    assert_eq!(accepted.stderr(), "accepted 1 change in `notes.json`\n");
    let golden = goldens.json("notes.json");
    assert_eq!(golden["golden_output"]["final_result"], "Both are there.");
    assert_eq!(golden["accepted"][0]["who"], "ada");
    assert_eq!(golden["accepted"][0]["why"], "shorter");
    goldens.run(&["replay", "notes.json"]).succeeds();
    let shown = goldens.run(&["inspect", "notes.json"]).succeeds().stdout();
    assert!(shown.contains("by ada: shorter\n"), "{shown}");
    let text = goldens.read("notes.json");
    let again = goldens.run(&accept).succeeds();
    assert_eq!(again.stderr(), "`notes.json` has the same result: nothing to accept\n");
    assert_eq!(goldens.read("notes.json"), text);
    // A later change keeps the earlier signature.
    goldens.write("notes.json", &with_other_result(&text));
    let json = goldens.run(&[&accept[..], &["--json"]].concat()).succeeds().json();
    assert_eq!((&json["accepted"], &json["acceptance"]["who"]), (&json!(true), &json!("ada")));
    assert_eq!(goldens.json("notes.json")["accepted"].as_array().unwrap().len(), 2);
}

#[test]
fn a_golden_that_does_not_replay_cannot_be_accepted() {
    let text = with_other_question(NOTES);
    let goldens = Goldens::new([("notes.json", &text)]);
    let failed = goldens.run(&["accept", "notes.json", "--why", "x", "--who", "ada"]);
    failed.fails(
        1,
        &["`notes.json` does not replay", "no recording answers request 1", "record the run again"],
    );
    assert_eq!(goldens.read("notes.json"), text);
}

/// A rule that the run of `notes` breaks whatever its golden says.
const STRICT_RULES: &str = r#"{"forbidden_tools": ["notes.slow"]}"#;

#[test]
fn a_result_that_breaks_the_rules_cannot_be_accepted() {
    for text in [NOTES.to_owned(), with_other_result(NOTES)] {
        let goldens = Goldens::new([("notes.json", &*text), ("notes.rules.json", STRICT_RULES)]);
        let accept = ["accept", "notes.json", "--why", "x", "--who", "ada"];
        let message = "error: `notes.json` would still not pass: ";
        goldens.run(&accept).fails(1, &[message, "notes.slow", "change the rules"]);
        assert_eq!(goldens.read("notes.json"), text);
        goldens.run(&["replay", "."]).fails(1, &["1 changed"]);
        // Rules that the new result keeps are no obstacle.
        goldens.write("notes.rules.json", r#"{"exact": true, "outcome": true}"#);
        goldens.run(&accept).succeeds();
        goldens.run(&["replay", "."]).succeeds();
    }
}

#[test]
fn broken_rules_next_to_a_golden_end_with_2_and_are_named() {
    let accept = ["accept", "notes.json", "--why", "x", "--who", "ada"];
    for rules in ["{", "{\"outcom\": true}", "{}", "\u{0}"] {
        let goldens = Goldens::new([("notes.json", NOTES), ("notes.rules.json", rules)]);
        let message = "notes.rules.json` has no valid rules";
        goldens.run(&["replay", "."]).fails(2, &[message]);
        goldens.run(&accept).fails(2, &[message]);
        let json = goldens.run(&["replay", ".", "--json"]).fails(2, &[]).json();
        assert_eq!(json["error"]["exitCode"], 2);
    }
    let ruled =
        NOTES.replacen("\n  \"servers\"", "\n  \"rules\": {\"exact\": true},\n  \"servers\"", 1);
    let goldens = Goldens::new([("notes.json", &*ruled), ("notes.rules.json", STRICT_RULES)]);
    let message = "notes.rules.json`: the golden has rules of its own";
    goldens.run(&["replay", "."]).fails(2, &[message]);
}

#[test]
fn an_option_next_to_a_replay_replaces_what_was_recorded() {
    let goldens = Goldens::new([("notes.json", NOTES)]);
    let ask = |args: &[&str]| {
        let args = [&["ask", "--replay", "notes.json"], args].concat();
        Finished(run(&args, goldens.path()))
    };
    assert_eq!(ask(&[]).succeeds().stdout(), "Both are there.\n");
    for (option, value, difference) in [
        ("--temperature", "0.5", "`/body/temperature` is new: 0.5"),
        ("--system", "Be brief.", "`/body/messages/0/content` was \"Look.\", is now \"Be brief.\""),
        ("--model", "m-2", "`/body/model` was \"m-1\", is now \"m-2\""),
    ] {
        let message = "error: `notes.json` does not replay";
        ask(&[option, value]).fails(1, &[message, difference, "record the run again"]);
    }
}

/// Returns a golden on one line, as a trace.
fn trace(golden: &str) -> String {
    let golden = golden.replacen("\"origin\": \"recorded\"", "\"origin\": \"trace\"", 1);
    // Only blanks between tokens have line ends.
    golden.lines().map(str::trim_start).collect()
}

/// Proves: G-b14, G-b18
#[test]
fn traces_that_replay_become_goldens_and_the_others_are_named() {
    let lines = [
        trace(NOTES),
        trace(&with_other_question(NOTES)),
        String::new(),
        trace(&with_other_result(NOTES)),
        "nonsense".to_owned(),
        trace(NOTES),
    ];
    let goldens = Goldens::new([("run.jsonl", &lines.join("\n"))]);
    let converted = goldens.run(&["from-trace", "run.jsonl", "--out", "out"]).fails(
        1,
        &[
            "failed: `run.jsonl:2`: no recording answers request 1",
            "failed: `run.jsonl:4`: it replays with another result",
            "failed: `run.jsonl:5`: ",
            "2 goldens written, 3 failed",
        ],
    );
    assert_eq!(converted.stdout(), "out/notes.json\nout/notes-2.json\n");
    goldens.run(&["replay", "out"]).succeeds();
    assert_eq!(goldens.json("out/notes.json")["origin"], "trace");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let file = fs::metadata(goldens.path().join("out/notes.json")).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
    }
    let good = goldens.write("good.jsonl", &lines[0]);
    let json = goldens.run(&["from-trace", "good.jsonl", "--json"]).succeeds().json();
    assert_eq!(json["goldens"][0]["file"], "tests/goldens/traces/notes.json");
    assert_eq!(json["goldens"][0]["line"], "good.jsonl:1");
    fs::write(good, "").unwrap();
    goldens.run(&["from-trace", "good.jsonl"]).fails(1, &["the files have no traces"]);
}
