//! Tests of the displayed launch and of its fingerprint.

use std::path::Path;

use innkeeper_config::{Config, Environment};
use serde_json::{Value, json};

use super::*;

fn spec(entry: &Value) -> LaunchSpec {
    spec_in(entry, "/here")
}

fn spec_in(entry: &Value, here: &str) -> LaunchSpec {
    let file = json!({"servers": {"one": entry}});
    let env = Environment::from_pairs([("KEY", "hunter2"), ("PROGRAM", "tool")]);
    let config = Config::from_value(&file, "mcp.json", Path::new("/"), &env).unwrap();
    LaunchSpec::for_server(&config.servers["one"], Some(Path::new(here)))
}

#[test]
fn all_is_shown_but_values_of_variables_and_headers() {
    let one = spec(&json!({"command": "${PROGRAM}", "args": ["-x"], "env": {"K": "${KEY}"}}));
    let command = one.program.command.as_ref().unwrap();
    assert_eq!((command.to_string(), &**command.expose()), ("${PROGRAM}".to_owned(), "tool"));
    assert_eq!(
        (one.program.args[0].as_written(), &one.program.env[..]),
        ("-x", &["K".to_owned()][..])
    );
    let two = spec(&json!({"url": "https://a.example", "headers": {"Auth": "${KEY}"}}));
    assert_eq!(two.remote.url.as_ref().unwrap().to_string(), "https://a.example");
    assert_eq!(two.remote.headers, ["Auth"]);
    assert!(!format!("{one:?}{two:?}").contains("hunter2"));
}

#[test]
fn values_of_variables_are_shown_unless_they_look_like_a_secret() {
    let arg_after = |option: &str, arg: &str| {
        spec(&json!({"command": "x", "args": [option, arg]})).program.arg_expansions().remove(1)
    };
    let shown = |arg: &str| arg_after("-x", arg);
    assert_eq!(shown("run-${PROGRAM}?").as_deref(), Some("run-tool?"));
    assert_eq!(
        shown("https://me:pw@${PROGRAM}.example/").as_deref(),
        Some("https://***@tool.example/")
    );
    // The text of the file shows the same.
    assert_eq!(shown("https://me:${PROGRAM}@a.example/"), None);
    assert_eq!((shown("plain"), shown("${KEY}")), (None, None));
    assert_eq!(arg_after("--token", "${PROGRAM}"), None);
    let remote = spec(&json!({"url": "https://${PROGRAM}/"}));
    assert_eq!(remote.remote.url_expansion().as_deref(), Some("https://tool/"));
    let helper = ["${PROGRAM}", "-x", "--token", "${PROGRAM}"];
    let helped = spec(&json!({"url": "https://a.example", "headersHelper": helper}));
    let shown = helped.remote.headers_helper_expansions();
    assert_eq!(shown, [Some("tool".to_owned()), None, None, None]);
}

#[test]
fn packages_and_variables_that_load_code_are_among_what_is_shown() {
    let entry = json!({"command": "npx", "args": ["-y", "p"],
        "env": {"A": "1", "LD_PRELOAD": "x.so", "NODE_OPTIONS": null}});
    let one = spec(&entry);
    assert_eq!(one.program.code_loading_variables().collect::<Vec<_>>(), ["LD_PRELOAD"]);
    assert_eq!(one.program.unset_env, ["NODE_OPTIONS"]);
    let [package] = &one.downloads.packages[..] else { panic!("{:?}", one.downloads.packages) };
    assert_eq!((&*package.name, &package.version), ("p", &None));
}

/// Attack: files | an approved relative command runs in another directory | the launch is not
/// approved | Approval first
#[test]
fn the_same_command_started_in_another_directory_is_another_launch() {
    let one = json!({"command": "sh", "args": ["./run.sh"]});
    let (here, there) = (spec_in(&one, "/here"), spec_in(&one, "/there"));
    assert!(!here.is_covered_by(&there));
    assert_eq!(there.program.directory.as_deref(), Some(Path::new("/there")));
    let with_cwd = json!({"command": "sh", "args": ["./run.sh"], "cwd": "/here"});
    assert!(
        spec_in(&with_cwd, "/there").is_covered_by(&here),
        "the folder counts, not who said it"
    );
    let remote = json!({"url": "https://a.example"});
    assert!(
        spec_in(&remote, "/here").is_covered_by(&spec_in(&remote, "/there")),
        "nothing is started"
    );
    let helped = json!({"url": "https://a.example", "headersHelper": ["./token.sh"]});
    assert!(!spec_in(&helped, "/here").is_covered_by(&spec_in(&helped, "/there")));
}

/// Attack: files | a file turns the guard off after the approval | the launch is not approved |
/// Approval first
#[test]
fn a_guard_that_looks_at_less_needs_another_decision_and_one_that_looks_at_more_does_not() {
    let with = |guard: Value| spec(&json!({"command": "tool", "guard": guard}));
    let (off, flag) = (with(json!("off")), with(json!("flag")));
    let some = with(json!({"results": "refuse"}));
    assert!(flag.is_covered_by(&off) && some.is_covered_by(&off) && flag.is_covered_by(&flag));
    assert!(!off.is_covered_by(&flag) && !off.is_covered_by(&some));
    assert!(
        !some.is_covered_by(&flag) && !flag.is_covered_by(&some),
        "each looks at less somewhere"
    );
    assert_ne!(off.fingerprint(), flag.fingerprint());
}

#[test]
fn whatever_changes_a_launch_changes_its_fingerprint_and_nothing_else_does() {
    let plain = json!({"command": "tool", "args": ["a", "b"], "env": {"A": "1"}});
    let first = spec(&plain);
    assert_eq!(first.fingerprint().len(), 64);
    let mut same = plain.clone();
    same["timeout"] = json!(3);
    same["command"] = json!("${PROGRAM}");
    assert!(spec(&same).is_covered_by(&first));
    for (key, value) in [
        ("command", json!("other")),
        ("args", json!(["ab"])),
        ("args", json!(["a"])),
        ("env", json!({"A": "2"})),
        ("env", json!({"A": null})),
        ("cwd", json!("/")),
        ("inheritEnv", json!(true)),
        ("inheritEnv", json!("strict")),
        ("sandbox", json!({"write": ["/"]})),
        ("limits", json!({"processes": 9})),
        ("command", json!("${PROGRAM}s")),
    ] {
        let mut other = plain.clone();
        other[key] = value;
        assert!(!spec(&other).is_covered_by(&first), "{other}");
    }
    let remote = json!({"url": "https://a.example", "headers": {"A": "1"}});
    let first = spec(&remote);
    for (key, value) in [
        ("url", json!("https://b.example")),
        ("type", json!("sse")),
        ("headers", json!({"A": "2"})),
        ("headers", json!({"B": "1"})),
        ("oauth", json!({"clientId": "me"})),
    ] {
        let mut other = remote.clone();
        other[key] = value;
        assert!(!spec(&other).is_covered_by(&first), "{other}");
    }
}

/// Without the length of each part, the kind letter of a part could be text of the part before it.
/// Attack: files | arguments and variables that concatenate to the bytes of an approved launch |
/// the fingerprints differ | Approval first
#[test]
fn parts_of_a_launch_cannot_be_taken_for_one_another() {
    let local = |args: Value, env: Value| spec(&json!({"command": "t", "args": args, "env": env}));
    let helped = |url: &str, helper: Value| spec(&json!({"url": url, "headersHelper": helper}));
    let none = || json!({});
    let pairs = [
        (local(json!(["x", "y"]), none()), local(json!(["xay"]), none())),
        (local(json!(["x"]), json!({"A": "1"})), local(json!(["xvA=1"]), none())),
        (local(json!([]), json!({"A": "1"})), local(json!(["vA=1"]), none())),
        (local(json!([]), json!({"A": "1vB=2"})), local(json!([]), json!({"A": "1", "B": "2"}))),
        (local(json!([]), json!({"A": null})), local(json!(["uA"]), none())),
        (spec(&json!({"command": "tax"})), spec(&json!({"command": "t", "args": ["x"]}))),
        (
            helped("https://a.example", json!(["x", "y"])),
            helped("https://a.example", json!(["xpy"])),
        ),
    ];
    for (one, other) in pairs {
        assert_ne!(one.fingerprint(), other.fingerprint(), "{one:?} {other:?}");
        assert!(!one.is_covered_by(&other) && !other.is_covered_by(&one), "{one:?} {other:?}");
    }
}

#[test]
fn the_file_of_an_identity_token_is_part_of_the_launch_after_its_variables_are_expanded() {
    let launch = |file: &str, program: &str| {
        let enterprise = json!({"issuer": "https://idp.example", "clientId": "we",
            "tokenEndpoint": "https://idp.example/token", "idTokenFile": file});
        let oauth = json!({"clientId": "us", "clientSecret": "${KEY}", "enterprise": enterprise});
        let file = json!({"servers": {"one": {"url": "https://a.example", "oauth": oauth}}});
        let env = Environment::from_pairs([("KEY", "hunter2"), ("PROGRAM", program)]);
        let config = Config::from_value(&file, "mcp.json", Path::new("/"), &env).unwrap();
        LaunchSpec::for_server(&config.servers["one"], Some(Path::new("/here")))
    };
    let first = launch("/run/${PROGRAM}", "token");
    assert!(launch("/run/${PROGRAM}", "token").is_covered_by(&first));
    assert!(!launch("/run/${PROGRAM}", "other").is_covered_by(&first));
    assert!(!launch("/run/other", "token").is_covered_by(&first));
}

#[test]
fn the_debug_text_of_a_trust_policy_is_its_kind() {
    use crate::trust::TrustPolicy;

    assert_eq!(format!("{:?}", TrustPolicy::AllowAll), "AllowAll");
    assert_eq!(format!("{:?}", TrustPolicy::Ask(std::sync::Arc::new(|_| false))), "Ask");
}
