//! Lines as people type them.

use clap::CommandFactory;

use super::verbs::HostVerb;
use super::*;

/// The whole line with the verbs that load a configuration.
#[derive(Debug, Parser)]
#[command(name = "innkeeper")]
struct HostLine {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: HostVerb,
}

fn parse(line: &[&str]) -> Result<HostLine, clap::Error> {
    let words = [&["innkeeper"], line].concat();
    HostLine::try_parse_from(order::config_after_verb(words.iter().map(OsString::from)))
}

#[test]
fn the_definitions_are_consistent() {
    Line::command().debug_assert();
    HostLine::command().debug_assert();
}

#[test]
fn global_options_may_stand_before_and_after_the_verb() {
    for line in [
        &["--json", "--timeout", "1.5", "call", "fs.read", "path=a"][..],
        &["call", "--json", "fs.read", "--timeout=1.5", "path=a"],
        &["call", "fs.read", "path=a", "--timeout", "1.5", "--json"],
    ] {
        let parsed = parse(line).unwrap();
        assert!(parsed.global.json, "{line:?}");
        assert_eq!(parsed.global.timeout, Some(Duration::from_millis(1500)));
        let HostVerb::Call(call) = parsed.verb else { panic!("{line:?}") };
        assert_eq!(call.target, "fs.read");
        assert_eq!(call.pairs.len(), 1);
    }
}

#[test]
fn config_may_be_given_more_than_once() {
    let parsed = parse(&["tools", "--config", "a.json", "--config", "b.json"]).unwrap();
    assert_eq!(parsed.global.config, [PathBuf::from("a.json"), PathBuf::from("b.json")]);
    let parsed = parse(&["--config", "a.json", "tools", "--config", "b.json"]).unwrap();
    assert_eq!(parsed.global.config, [PathBuf::from("a.json"), PathBuf::from("b.json")]);
    let parsed = parse(&["--config", "a.json", "--config", "b.json", "tools"]).unwrap();
    assert_eq!(parsed.global.config.len(), 2);
}

/// Proves: FR9.5
#[test]
fn the_five_severities_are_accepted_in_any_case_and_warning_is_the_default() {
    assert_eq!(parse(&["tools"]).unwrap().global.log_level, Level::Warning);
    for (name, level) in [
        ("debug", Level::Debug),
        ("info", Level::Info),
        ("warning", Level::Warning),
        ("error", Level::Error),
        ("CRITICAL", Level::Critical),
    ] {
        assert_eq!(parse(&["tools", "--log-level", name]).unwrap().global.log_level, level);
    }
    assert!(parse(&["tools", "--log-level", "loud"]).is_err());
}

#[test]
fn a_timeout_is_a_positive_number_of_seconds() {
    for wrong in ["0", "-1", "inf", "NaN", "1e400", "soon", ""] {
        assert!(parse(&["tools", &format!("--timeout={wrong}")]).is_err(), "{wrong}");
    }
}

#[test]
fn an_argument_without_an_equals_sign_is_refused_by_name() {
    let error = parse(&["call", "fs.read", "path"]).unwrap_err().to_string();
    assert!(error.contains("`path`") && error.contains("key=value"), "{error}");
}

#[test]
fn json_arguments_may_come_from_stdin_or_begin_with_a_hyphen() {
    let HostVerb::Call(call) = parse(&["call", "a.b", "--args", "-"]).unwrap().verb else {
        panic!("not a call");
    };
    assert_eq!(call.given.as_deref(), Some("-"));
}
