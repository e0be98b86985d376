//! Tests of command lines as users type them.

use clap::CommandFactory;

use super::commands::HostCommand;
use super::*;

/// A command line with the commands that load a configuration.
#[derive(Debug, Parser)]
#[command(name = "innkeeper")]
struct HostCli {
    #[command(flatten)]
    global: GlobalOptions,
    #[command(subcommand)]
    command: HostCommand,
}

fn parse(line: &[&str]) -> Result<HostCli, clap::Error> {
    let args = [&["innkeeper"], line].concat();
    HostCli::try_parse_from(option_order::move_server_options_after_command(
        args.iter().map(OsString::from),
    ))
}

#[test]
fn the_definitions_are_consistent() {
    Cli::command().debug_assert();
    HostCli::command().debug_assert();
}

#[test]
fn global_options_may_stand_before_and_after_the_command() {
    for line in [
        &["--json", "--timeout", "1.5", "call", "fs.read", "path=a"][..],
        &["call", "--json", "fs.read", "--timeout=1.5", "path=a"],
        &["call", "fs.read", "path=a", "--timeout", "1.5", "--json"],
    ] {
        let parsed = parse(line).unwrap();
        assert!(parsed.global.json, "{line:?}");
        assert_eq!(parsed.global.timeout, Some(Duration::from_millis(1500)));
        let HostCommand::Call(call) = parsed.command else { panic!("{line:?}") };
        assert_eq!(call.target, "fs.read");
        assert_eq!(call.arguments.len(), 1);
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
    assert_eq!(parse(&["tools"]).unwrap().global.log.log_level, LogLevel::Warning);
    for (name, level) in [
        ("debug", LogLevel::Debug),
        ("info", LogLevel::Info),
        ("warning", LogLevel::Warning),
        ("error", LogLevel::Error),
        ("CRITICAL", LogLevel::Critical),
    ] {
        assert_eq!(parse(&["tools", "--log-level", name]).unwrap().global.log.log_level, level);
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
fn an_argument_without_an_equals_sign_is_rejected_by_name() {
    let error = parse(&["call", "fs.read", "path"]).unwrap_err().to_string();
    assert!(error.contains("'path'") && error.contains("KEY=VALUE"), "{error}");
}

#[test]
fn json_arguments_may_come_from_stdin_or_begin_with_a_hyphen() {
    let HostCommand::Call(call) = parse(&["call", "a.b", "--args", "-"]).unwrap().command else {
        panic!("not a call");
    };
    assert_eq!(call.json_args.as_deref(), Some("-"));
}

#[test]
fn every_command_of_the_pages_that_is_not_run_parses() {
    let mut count = 0;
    for block in innkeeper_testkit::shell_blocks("sh,no_run") {
        let text = block.text.replace("\\\n", " ");
        for line in text.lines() {
            let words = shlex::split(line).unwrap_or_else(|| panic!("{}: {line}", block.location));
            let words = words.split(|word| matches!(word.as_str(), "|" | ">" | "<" | "&&" | ";"));
            for command in words.filter_map(innkeeper_command) {
                let parsed = Cli::from_args(command.iter().map(OsString::from));
                assert!(parsed.is_ok(), "{}: {line}\n{}", block.location, parsed.unwrap_err());
                count += 1;
            }
        }
    }
    assert!(count > 10, "only {count} commands");
}

/// The words of an `innkeeper` command, without variables in front.
fn innkeeper_command(words: &[String]) -> Option<&[String]> {
    let start = words.iter().position(|word| !word.contains('=')).unwrap_or(0);
    let command = words.get(start..)?;
    (command.first()? == "innkeeper").then_some(command)
}
