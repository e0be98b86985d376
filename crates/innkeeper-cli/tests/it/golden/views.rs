//! `list`, `inspect`, `diff` and `stats` show what was recorded.

use serde_json::{Value, json};

use super::{BROKEN, Goldens, NOTES, with_other_result};

#[test]
fn list_shows_each_golden_and_says_what_it_skipped() {
    let goldens = Goldens::new([
        ("set/notes.json", NOTES),
        ("set/errors/broken.json", BROKEN),
        ("set/shared/tool_schema_definitions.json", "{}"),
    ]);
    let listed = goldens.run(&["list", "set"]).succeeds();
    insta::assert_snapshot!(listed.stdout());
    assert_eq!(listed.stderr(), "skipped 1 file that is no golden\n");
    let json = goldens.run(&["list", "set", "--json"]).succeeds().json();
    assert_eq!(json[0]["file"], "set/errors/broken.json");
    assert_eq!((&json[1]["calls"], &json[1]["category"]), (&json!(2), &Value::Null));
}

#[test]
fn a_directory_without_goldens_lists_none() {
    let goldens = Goldens::new([]);
    let listed = goldens.run(&["list", "."]).succeeds();
    assert_eq!(listed.stdout(), "");
    assert_eq!(listed.stderr(), "`.` has no goldens\n");
    assert_eq!(goldens.run(&["list", ".", "--json"]).succeeds().json(), json!([]));
}

/// Proves: G67
#[test]
fn inspect_shows_the_steps_of_a_run_with_its_failures() {
    let goldens = Goldens::new([("broken.json", BROKEN)]);
    let shown = goldens.run(&["inspect", "broken.json"]).succeeds();
    insta::assert_snapshot!(shown.stdout());
    let json = goldens.run(&["inspect", "broken.json", "--json"]).succeeds().json();
    assert_eq!(json["iterations"][0]["requests"][0]["failure"], "status 429");
    assert_eq!(json["totals"]["failed_requests"], 2);
    assert_eq!(json["totals"]["failed_calls"], 1);
}

#[test]
fn an_output_that_is_no_result_is_named_with_its_file() {
    let mut golden: Value = serde_json::from_str(NOTES).unwrap();
    golden["golden_output"] = json!("text");
    let goldens = Goldens::new([("notes.json", &golden.to_string())]);
    let message = "`golden_output` of `notes.json` is no result of a run";
    goldens.run(&["inspect", "notes.json"]).fails(2, &[message, "hint: "]);
    goldens.run(&["diff", "notes.json", "notes.json"]).fails(2, &[message]);
    goldens.run(&["stats", "notes.json"]).fails(2, &[message]);
}

/// Proves: G-b19
#[test]
fn diff_puts_runs_side_by_side_and_compares_their_calls() {
    let goldens = Goldens::new([("a.json", NOTES), ("b.json", BROKEN)]);
    let shown = goldens.run(&["diff", "a.json", "b.json"]).succeeds();
    insta::assert_snapshot!(shown.stdout());
    goldens.write("c.json", &with_other_result(NOTES));
    let json = goldens.run(&["diff", "a.json", "b.json", "c.json", "--json"]).succeeds().json();
    assert_eq!(json["goldens"].as_array().unwrap().len(), 3);
    assert_eq!(json["differences"][0]["other"], "b.json");
    assert_eq!(json["differences"][0]["tool_chain"][0]["path"], "/0/tool_name");
    assert_eq!(json["differences"][1]["tool_chain"], json!([]));
}

/// Proves: G-b16, G-b17, G-b20
#[test]
fn stats_count_calls_failures_and_missing_goldens() {
    let goldens = Goldens::new([("a.json", NOTES), ("b.json", BROKEN)]);
    let shown = goldens.run(&["stats", "."]).succeeds();
    insta::assert_snapshot!(shown.stdout());
    let json = goldens.run(&["stats", "a.json", "b.json", "--json"]).succeeds().json();
    assert_eq!(json["goldens"], 2);
    assert_eq!(json["request_failures"], json!({"disconnected": 1, "status_429": 1}));
    let missing = json!(["happy_path", "provider_comparison", "edge_case"]);
    assert_eq!(json["missing_categories"], missing);
}
