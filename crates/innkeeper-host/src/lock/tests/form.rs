//! Tests of writing, hashing and reading a lock.

use std::io::Write as _;

use super::super::{LockError, MAX_LOCK_BYTES, Package, RunnerPackages, canonical, package};
use super::*;

#[test]
fn a_lock_is_written_sorted_and_read_back_the_same() {
    let mut one = server("npx", &[json!({"name": "b", "inputSchema": {}}), json!({"name": "a"})]);
    one.instructions = Some(PinnedText::new("Be brief."));
    let lock = lock([("one", one)]);
    let text = lock.to_text().unwrap();
    insta::assert_snapshot!(text);
    let read = Lock::from_text(&text, "mcp.lock").unwrap();
    assert_eq!(read.to_text().unwrap(), text);
    assert_eq!(descriptions(&lock.compare(&read)), [""; 0]);
}

#[test]
fn the_canonical_form_keeps_numbers_and_doubled_members_and_nothing_else_of_the_spelling() {
    for (input, form) in [
        (r#" { "b" : 1 , "a" : [ true , null ] } "#, r#"{"a":[true,null],"b":1}"#),
        (r#""\u0061\/\n\u00e9""#, r#""a/\né""#),
        ("12345678901234567890123.0e-2", "12345678901234567890123.0e-2"),
        (r#"{"a":2,"b":0,"a":1}"#, r#"{"a":2,"a":1,"b":0}"#),
        (r#"{"a":"\ud800"}"#, r#"{"a":"\ud800"}"#),
        (r#"{"\ud800" : 1, "a b":2 , "a":"]}\\\"" }"#, r#"{"\ud800":1,"a":"]}\\\"","a b":2}"#),
        (r#"{"x":{ },"y":[ ]}"#, r#"{"x":{},"y":[]}"#),
    ] {
        assert_eq!(canonical::compact(input), form, "{input}");
        assert_eq!(canonical::compact(&canonical::pretty(input)), form, "{input}");
    }
    // The second hash is from RFC 6234; the first has the same bytes.
    let hash = canonical::hash_json(&raw(r#" "abc" "#));
    assert_eq!(hash, canonical::hash_text("\"abc\""));
    let abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(canonical::hash_text("abc"), abc);
}

/// Attack: data | a definition nests 10,000 levels | the pin has a hash that differs for another
/// value | No unbounded memory
#[test]
fn nesting_without_end_is_hashed_all_the_same() {
    let nested = |inside: &str| format!("{}{inside}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(canonical::hash_json(&raw(&nested("1"))), canonical::hash_json(&raw(&nested("1"))));
    assert_ne!(canonical::hash_json(&raw(&nested("1"))), canonical::hash_json(&raw(&nested("2"))));
    let mut server = server("one", &[]);
    let definition = raw(&format!(r#"{{"name": "a", "_meta" : {} }}"#, nested(" 1 ")));
    server.tools.insert("a".to_owned(), PinnedTool::new(&definition));
    Lock::from_text(&lock([("one", server)]).to_text().unwrap(), "mcp.lock").unwrap();
}

/// Attack: data | a definition changes the last digit of a number beyond 64 bits | the pin does not
/// match | Complete checks
#[test]
fn a_number_beyond_precision_is_a_change_all_the_same() {
    let with = |number: &str| {
        let definition = raw(&format!(r#"{{"name":"a","x":{number}}}"#));
        let mut server = server("one", &[]);
        server.tools.insert("a".to_owned(), PinnedTool::new(&definition));
        lock([("one", server)])
    };
    let (old, new) = (with("1000000000000000000000001"), with("1000000000000000000000002"));
    assert_eq!(descriptions(&old.compare(&new)), ["suspicious one.a definition changed"]);
}

#[test]
fn an_invalid_lock_is_refused_with_file_and_line() {
    let refuse = |text: &str| Lock::from_text(text, "dir/mcp.lock").unwrap_err().to_string();
    assert_eq!(refuse("{\n  \"version\": 1,\n  oops\n}"), "dir/mcp.lock:3:3: not a valid lock");
    assert_eq!(refuse(""), "dir/mcp.lock:1:0: not a valid lock");
    let newer = refuse(r#"{"version": 2, "more": true}"#);
    assert_eq!(newer, "`dir/mcp.lock`: unsupported lock version 2, expected 1");
    let text = tools(&[json!({"name": "a", "description": "Old."})]).to_text().unwrap();
    let edited = refuse(&text.replace("Old.", "New."));
    let expected = "`dir/mcp.lock`: hash mismatch for tool `a` of `one`";
    assert_eq!(edited, expected);
}

#[test]
fn an_unreadable_lock_is_reported_with_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let error = Lock::from_file(directory.path()).unwrap_err();
    assert!(matches!(error, LockError::Unreadable { .. }), "{error}");
}

/// Attack: files | `mcp.lock` is larger than the limit | the file is rejected | No unbounded memory
#[test]
fn a_file_at_the_limit_is_read_and_one_past_it_is_not() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let text = lock([]).to_text().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let spaces = vec![b' '; usize::try_from(MAX_LOCK_BYTES).unwrap() - text.len()];
    file.write_all(&spaces).unwrap();
    assert!(Lock::from_file(file.path()).unwrap().is_some());
    file.write_all(b" ").unwrap();
    let error = Lock::from_file(file.path()).unwrap_err();
    assert!(matches!(error, LockError::TooLarge { .. }), "{error}");
    assert!(Lock::from_file(file.path().with_extension("none")).unwrap().is_none());
}

/// Attack: files | `mcp.lock` is a pipe | the host reports the file at once | No unbounded wait
#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_lock_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mcp.lock");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
    let error = Lock::from_file(&path).unwrap_err();
    assert!(matches!(error, LockError::Unreadable { .. }), "{error}");
}

fn packages(line: &str) -> RunnerPackages {
    let mut fields = line.split(' ').map(str::to_owned);
    let command = fields.next().unwrap();
    package::packages_for_command(&command, &fields.collect::<Vec<_>>())
}

#[test]
fn the_package_of_a_runner_is_known_and_its_version_where_it_is_exact() {
    for (line, name, version) in [
        ("npx -y @scope/name@1.2.3 /srv", "@scope/name", Some("1.2.3")),
        ("/usr/bin/npx -y @scope/name", "@scope/name", None),
        ("npx name@latest", "name", None),
        ("npx name@^1.2.3", "name", None),
        ("npx name@1.2", "name", None),
        ("npx --yes --package=name@1.2.3-rc.1 bin", "name", Some("1.2.3-rc.1")),
        ("npx -p name@1.2.3 bin", "name", Some("1.2.3")),
        ("uvx name==1.2", "name", Some("1.2")),
        ("uvx name@1.2.3", "name", Some("1.2.3")),
        ("uvx --python 3.12 name", "name", None),
        ("uvx --from name[extra]==2.0 bin", "name[extra]", Some("2.0")),
        ("uvx name==1.*", "name", None),
        ("npm exec --yes -- name@1.2.3 x", "name", Some("1.2.3")),
        ("npm x name", "name", None),
        ("npm --yes exec name", "name", None),
        ("pipx run --spec name==1.0 bin", "name", Some("1.0")),
    ] {
        let version = version.map(str::to_owned);
        assert_eq!(packages(line).packages, [Package { name: name.to_owned(), version }], "{line}");
    }
    for line in ["node server.js@1.2.3", "npx -y", "npm start", "npm run exec name", "pipx list"] {
        assert_eq!(packages(line), RunnerPackages::default(), "{line}");
    }
}

#[test]
fn every_package_that_a_runner_is_told_of_is_known_and_whether_a_shell_may_name_more() {
    let names = |line: &str| -> Vec<String> {
        packages(line).packages.into_iter().map(|package| package.name).collect()
    };
    assert_eq!(
        names("npx -y -p good@1.0.0 -p evil --package=more bin -p no"),
        ["good", "evil", "more"]
    );
    assert_eq!(names("uvx --with evil,more good==1.0 --with no"), ["good", "evil", "more"]);
    assert_eq!(names("uvx --from good --with=evil bin"), ["good", "evil"]);
    assert_eq!(names("npx -p"), [""; 0]);
    assert!(
        packages("npx -y -c some-text").uses_shell && packages("npm x --call=some-text").uses_shell
    );
    assert!(!packages("npx name -c no").uses_shell && !packages("uvx -c name").uses_shell);
}

#[test]
fn a_package_named_by_a_place_has_no_version() {
    for line in [
        "npx git+https://x.example/y.git#1.2.3",
        "npx git+ssh://git@x.example/y.git#1.2.3",
        "npx github:me/it@1.2.3",
        "uvx ./it==1.0",
        "npx https://x.example/it@1.2.3",
    ] {
        let package = packages(line).packages.remove(0);
        assert!(package.is_location() && line.ends_with(&package.name), "{line}");
        assert_eq!(package.version, None, "{line}");
    }
    assert!(!packages("npx @scope/name@1.2.3").packages[0].is_location());
}
