//! Tests of name resolution.

use serde_json::json;

use super::*;

fn tools(names: &[&str]) -> Tools {
    names.iter().map(|name| Tool::new(*name, "", json!({}))).collect()
}

fn resolve_name(names: &[&str], written_name: &str) -> Option<(String, Option<NameChange>)> {
    let tools = tools(names);
    let resolved = resolve(&tools, written_name)?;
    let change = resolved.repair.map(|repair| match repair {
        Repair::Name { written_name: written, resolved_name: chosen, change } => {
            assert_eq!((written.as_str(), &chosen), (written_name, &resolved.tool.name));
            change
        }
        other @ (Repair::Syntax { .. }
        | Repair::EmbeddedSyntax { .. }
        | Repair::Coercion { .. }
        | Repair::Omitted { .. }) => panic!("{other}"),
    });
    Some((resolved.tool.name.clone(), change))
}

#[test]
fn each_match_rule_finds_its_tool_and_reports_it() {
    let names = ["fs.read_text", "fs.write_text", "clock.now", "Plan", "web-search/deep"];
    let resolve_in = |written_name| resolve_name(&names, written_name);
    let repaired = |name: &str, change| Some((name.to_owned(), Some(change)));
    assert_eq!(resolve_in("fs.read_text"), Some(("fs.read_text".to_owned(), None)));
    assert_eq!(resolve_in("FS.Read_Text"), repaired("fs.read_text", NameChange::Case));
    assert_eq!(resolve_in("plan"), repaired("Plan", NameChange::Case));
    for written_name in ["functions.Plan", "tools.Plan", "default_api.Plan", "functions.plan"] {
        assert_eq!(
            resolve_in(written_name),
            repaired("Plan", NameChange::Prefix),
            "{written_name}"
        );
    }
    assert_eq!(resolve_in("now"), repaired("clock.now", NameChange::Server));
    assert_eq!(resolve_in("functions.now"), repaired("clock.now", NameChange::Server));
    for written_name in ["fs_read_text", "fs-read-text", "fs/read.text", "mcp__fs__read_text"] {
        assert_eq!(
            resolve_in(written_name),
            repaired("fs.read_text", NameChange::Separators),
            "{written_name}"
        );
    }
    assert_eq!(resolve_in("Web.Search_Deep"), repaired("web-search/deep", NameChange::Separators));
}

#[test]
fn stray_markup_behind_a_name_is_removed() {
    let names = ["s.get_time", "s.add"];
    for written_name in [
        "s.get_time</arg_value>",
        "s_get_time<|channel|>commentary",
        "get_time<|constrain|>json",
        "default_api:s_get_time</tool_call>",
        "functions.get_time:0",
        "s.get_time:12",
        "s_get_time()",
        "\"s.get_time\"",
        " s.get_time\n",
    ] {
        let resolved = Some(("s.get_time".to_owned(), Some(NameChange::Markup)));
        assert_eq!(resolve_name(&names, written_name), resolved, "{written_name}");
    }
    for written_name in
        ["default_api:s_get_time", "functions:get_time", "tools:s.get_time", "tool:get_time"]
    {
        assert!(resolve_name(&names, written_name).is_some(), "{written_name}");
    }
}

#[test]
fn a_name_whose_markup_names_another_tool_is_ambiguous() {
    for written_name in [
        "s.get_time</function><function=s.add",
        "get_time<|call|>add",
        "s.get_time(s.add())",
        "<function=s.get_time",
        "s.get_tim</arg_value>",
    ] {
        assert_eq!(resolve_name(&["s.get_time", "s.add"], written_name), None, "{written_name}");
    }
    assert_eq!(resolve_name(&["a.now", "b.now"], "now</arg_value>"), None);
    let suggested = suggest(&tools(&["s.get_time"]), "default_api:get_tim</arg_value>");
    assert_eq!(suggested, ["s.get_time"]);
}

#[test]
fn an_exact_name_is_taken_even_if_it_looks_like_another_with_a_prefix() {
    let names = ["tools.list", "list"];
    assert_eq!(resolve_name(&names, "tools.list"), Some(("tools.list".to_owned(), None)));
}

#[test]
fn what_several_tools_may_be_meant_by_is_none_of_them() {
    assert_eq!(resolve_name(&["Go", "gO"], "go"), None);
    assert_eq!(resolve_name(&["a.now", "b.now"], "now"), None);
    assert_eq!(resolve_name(&["a.b", "a_b"], "a-b"), None);
    assert_eq!(resolve_name(&["Now", "nOw", "a.now"], "now"), None);
}

#[test]
fn a_name_that_is_only_alike_is_never_taken() {
    for written_name in
        ["", ".", "functions.", "mcp__", "clocknow", "clock.nov", "clock.now2", "clock"]
    {
        assert_eq!(resolve_name(&["clock.now"], written_name), None, "{written_name}");
    }
}

/// Proves: P34
#[test]
fn an_unknown_name_gets_the_likest_offered_ones() {
    let names = ["list_files", "list_tiles", "fs.list_files2", "list_filez", "delete"];
    assert_eq!(suggest(&tools(&["list_files", "other"]), "list-files"), ["list_files"]);
    assert_eq!(suggest(&tools(&names), "lst_files").len(), MAX_SUGGESTIONS);
    assert_eq!(suggest(&tools(&names), "lst_files")[0], "list_files");
    assert_eq!(suggest(&tools(&names), "unrelated thing"), Vec::<String>::new());
    assert_eq!(suggest(&tools(&["fs.list_files"]), "list_file"), ["fs.list_files"]);
}

#[test]
fn names_at_the_limit_are_compared_and_longer_ones_are_not() {
    let (at, past) = ("x".repeat(MAX_COMPARED_BYTES), "x".repeat(MAX_COMPARED_BYTES + 1));
    assert_eq!(suggest(&tools(&[&at]), &at[1..]), [at.as_str()]);
    assert_eq!(suggest(&tools(&[&past]), &at), Vec::<String>::new());
    assert_eq!(suggest(&tools(&[&at]), &past), Vec::<String>::new());
}

#[test]
fn tools_up_to_the_limit_are_compared_and_those_past_it_are_not() {
    let mut names: Vec<String> = (1..MAX_COMPARED_TOOLS).map(|at| format!("{at}")).collect();
    names.push("wanted".to_owned());
    let tools_named =
        |names: &[String]| names.iter().map(|name| Tool::new(name, "", json!({}))).collect();
    assert_eq!(suggest(&tools_named(&names), "wantet"), ["wanted"]);
    names.insert(0, "0".to_owned());
    assert_eq!(suggest(&tools_named(&names), "wantet"), Vec::<String>::new());
}
