//! Tests of the fixture server's command line.

use innkeeper_testkit::fixture;

use crate::stdio_client::StdioClient;

#[test]
fn an_unknown_switch_is_named_and_ends_with_2() {
    let mut command = fixture("a").command();
    let output = command.arg("--no-such-thing").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(errors, "innkeeper-fixture-server: unknown switch `--no-such-thing`\n");
}

#[test]
fn a_value_that_does_not_fit_is_named_and_ends_with_2() {
    for (args, problem) in [
        (&["--slow", "soon"][..], "`--slow` needs a number, not `soon`"),
        (&["--slow"], "`--slow` needs a value"),
        (&["--hang-init=yes"], "`--hang-init` takes no value"),
        (&["--era", "stone"], "`--era` is one of legacy, modern, dual, not `stone`"),
        (&["--tools", "[}"], "`--tools`:"),
        (&["--fail-starts", "1"], "`--fail-starts` needs `--state`"),
    ] {
        let output = fixture("a").command().args(args).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains(problem), "{args:?}: {errors}");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn the_help_names_every_switch_given_to_a_fixture() {
    let output = fixture("a").command().arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let fixture = fixture("a").switch("--hang-init").with("--slow", 5).with("--malformed", "nul");
    for arg in fixture.args().iter().filter(|arg| arg.starts_with("--")) {
        assert!(help.contains(&format!("  {arg}")), "{arg}");
    }
    assert_eq!(output.status.code(), Some(0));
}

#[test]
#[should_panic(expected = "innkeeper-fixture-server has no switch `--slwo`")]
fn a_misspelt_switch_fails_where_the_fixture_is_made() {
    let _ = fixture("a").with("--slwo", 5);
}

/// Proves: TR7.3
#[test]
fn a_fixture_server_ends_with_0_at_the_end_of_its_input() {
    assert_eq!(StdioClient::start_legacy(&fixture("a")).close_and_wait(), Some(0));
}
