//! Tests of finding tools by what models call them.

use serde_json::json;

use super::*;

fn tools(names: &[&str]) -> Tools {
    names.iter().map(|name| Tool::new(*name, "", json!({}))).collect()
}

fn found(names: &[&str], said: &str) -> Option<(String, Option<NameChange>)> {
    let tools = tools(names);
    let found = resolve(&tools, said)?;
    let change = found.repair.map(|repair| match repair {
        Repair::Name { said: told, taken, change } => {
            assert_eq!((told.as_str(), &taken), (said, &found.tool.name));
            change
        }
        other @ (Repair::Text { .. }
        | Repair::Encoded { .. }
        | Repair::Value { .. }
        | Repair::More { .. }) => panic!("{other}"),
    });
    Some((found.tool.name.clone(), change))
}

#[test]
fn each_rung_finds_its_tool_and_says_so() {
    let names = ["fs.read_text", "fs.write_text", "clock.now", "Plan", "web-search/deep"];
    let taken = |said| found(&names, said);
    let repaired = |name: &str, change| Some((name.to_owned(), Some(change)));
    assert_eq!(taken("fs.read_text"), Some(("fs.read_text".to_owned(), None)));
    assert_eq!(taken("FS.Read_Text"), repaired("fs.read_text", NameChange::Case));
    assert_eq!(taken("plan"), repaired("Plan", NameChange::Case));
    for said in ["functions.Plan", "tools.Plan", "default_api.Plan", "functions.plan"] {
        assert_eq!(taken(said), repaired("Plan", NameChange::Prefix), "{said}");
    }
    assert_eq!(taken("now"), repaired("clock.now", NameChange::Server));
    assert_eq!(taken("functions.now"), repaired("clock.now", NameChange::Server));
    for said in ["fs_read_text", "fs-read-text", "fs/read.text", "mcp__fs__read_text"] {
        assert_eq!(taken(said), repaired("fs.read_text", NameChange::Separators), "{said}");
    }
    assert_eq!(taken("Web.Search_Deep"), repaired("web-search/deep", NameChange::Separators));
}

#[test]
fn an_exact_name_is_taken_even_if_it_looks_like_another_with_a_prefix() {
    let names = ["tools.list", "list"];
    assert_eq!(found(&names, "tools.list"), Some(("tools.list".to_owned(), None)));
}

#[test]
fn what_several_tools_may_be_meant_by_is_none_of_them() {
    assert_eq!(found(&["Go", "gO"], "go"), None);
    assert_eq!(found(&["a.now", "b.now"], "now"), None);
    assert_eq!(found(&["a.b", "a_b"], "a-b"), None);
    assert_eq!(found(&["Now", "nOw", "a.now"], "now"), None);
}

#[test]
fn a_name_that_is_only_alike_is_never_taken() {
    for said in ["", ".", "functions.", "mcp__", "clocknow", "clock.nov", "clock.now2", "clock"] {
        assert_eq!(found(&["clock.now"], said), None, "{said}");
    }
}

/// Proves: P34
#[test]
fn an_unknown_name_gets_the_likest_offered_ones() {
    let names = ["list_files", "list_tiles", "fs.list_files2", "list_filez", "delete"];
    assert_eq!(suggest(&tools(&["list_files", "other"]), "list-files"), ["list_files"]);
    assert_eq!(suggest(&tools(&names), "lst_files").len(), SUGGESTIONS);
    assert_eq!(suggest(&tools(&names), "lst_files")[0], "list_files");
    assert_eq!(suggest(&tools(&names), "unrelated thing"), Vec::<String>::new());
    assert_eq!(suggest(&tools(&["fs.list_files"]), "list_file"), ["fs.list_files"]);
}

#[test]
fn names_at_the_limit_are_compared_and_longer_ones_are_not() {
    let (at, past) = ("x".repeat(COMPARED), "x".repeat(COMPARED + 1));
    assert_eq!(suggest(&tools(&[&at]), &at[1..]), [at.as_str()]);
    assert_eq!(suggest(&tools(&[&past]), &at), Vec::<String>::new());
    assert_eq!(suggest(&tools(&[&at]), &past), Vec::<String>::new());
}

#[test]
fn tools_up_to_the_limit_are_compared_and_those_past_it_are_not() {
    let mut names: Vec<String> = (1..OTHERS).map(|at| format!("{at}")).collect();
    names.push("wanted".to_owned());
    let offered =
        |names: &[String]| names.iter().map(|name| Tool::new(name, "", json!({}))).collect();
    assert_eq!(suggest(&offered(&names), "wantet"), ["wanted"]);
    names.insert(0, "0".to_owned());
    assert_eq!(suggest(&offered(&names), "wantet"), Vec::<String>::new());
}
