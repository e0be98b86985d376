//! Tests of the contents that `call`, `read` and `prompt` print, on a terminal and on a pipe.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use innkeeper_testkit::{Fixture, fixture, mcp_json};
use serde_json::{Value, json};

use crate::program::{innkeeper, run};
use crate::terminal::{TerminalRun, run_command, run_on_terminal, screen_text};

/// Bytes that are neither text nor free of control characters.
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n\x00\xff";

/// [`IMAGE`] in base64.
const IMAGE_BASE64: &str = "iVBORw0KGgoA/w==";

fn config_dir(server: Fixture) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mcp.json"), mcp_json([server]).to_string()).unwrap();
    dir
}

/// A server whose tools return this result.
fn tool_server(result: &Value) -> tempfile::TempDir {
    config_dir(fixture("one").with("--call-result", result))
}

/// Calls a tool on a terminal; the temporary directory is `tmp` in the directory.
fn call_on_terminal(dir: &Path, args: &[&str], columns: u16) -> TerminalRun {
    fs::create_dir_all(dir.join("tmp")).unwrap();
    let line = [&["call", "one.pid", "--config", "mcp.json"], args].concat();
    let mut command = innkeeper(&line, dir);
    command.env("TMPDIR", dir.join("tmp"));
    run_command(command, columns)
}

fn call_on_pipe(dir: &Path, args: &[&str]) -> (Vec<u8>, String) {
    let output = run(&[&["call", "one.pid", "--config", "mcp.json"], args].concat(), dir);
    (output.stdout, String::from_utf8(output.stderr).unwrap())
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// A result with a block of every type.
fn every_block() -> Value {
    json!({
        "content": [
            {"type": "text", "text": "First line\u{1b}[2J\nsecond line"},
            {"type": "image", "mimeType": "image/png", "data": IMAGE_BASE64},
            {"type": "resource_link", "uri": "fx://one/\u{1b}[2J", "name": "link", "mimeType": "text/plain"},
            {"type": "resource", "resource": {"uri": "fx://one/text", "text": "Text of a resource"}},
            {"type": "hologram", "depth": 123_456_789},
        ],
        "structuredContent": {"rows": [{"a": 1}], "total": 1}
    })
}

#[test]
fn on_a_terminal_every_block_is_shown_as_people_read_it() {
    let dir = tool_server(&every_block());
    for columns in [80, 120] {
        let run = call_on_terminal(dir.path(), &[], columns);
        assert_eq!(run.status.code(), Some(0), "{}", run.stderr);
        let names = names_in(&dir.path().join("tmp"));
        let [name] = &names[..] else { panic!("{names:?}") };
        assert!(name.starts_with("innkeeper-") && name.ends_with(".png"), "{name}");
        let file = dir.path().join("tmp").join(name);
        assert_eq!(fs::read(&file).unwrap(), IMAGE);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let text = run.stdout.replace(&file.display().to_string(), "TMPDIR/FILE.png");
        insta::assert_snapshot!("every_block_on_a_terminal", text.replace('\u{1b}', "␛"));
        fs::remove_file(file).unwrap();
    }
}

#[test]
fn on_a_pipe_and_with_json_the_whole_result_object_is_printed() {
    let dir = tool_server(&every_block());
    for args in [&[][..], &["--json"], &["--output", "json"]] {
        let (stdout, stderr) = call_on_pipe(dir.path(), args);
        let result: Value = serde_json::from_slice(&stdout).unwrap();
        assert_eq!(result, every_block(), "{args:?}: {stderr}");
        assert_eq!(stdout.iter().filter(|byte| **byte == b'\n').count(), 1, "{args:?}");
    }
    let on_terminal = call_on_terminal(dir.path(), &["--output", "json"], 80);
    assert_eq!(serde_json::from_str::<Value>(&on_terminal.stdout).unwrap(), every_block());
    assert!(on_terminal.stdout.contains("\n    {\n      \"type\": \"text\","));
    assert!(!on_terminal.stdout.contains('\u{1b}'));
    assert_eq!(names_in(&dir.path().join("tmp")), Vec::<String>::new(), "no file is saved");
    let refused = run(&["call", "one.pid", "--json", "--output", "text"], dir.path());
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_list_of_flat_objects_is_a_table_and_text_that_repeats_it_is_left_out() {
    let rows = json!({"result": [
        {"name": "cellar.md", "size": 12_345, "hidden": false, "note": null},
        {"name": "世界.md", "size": 7, "hidden": true, "note": "second"}
    ]});
    let content = json!([{"type": "text", "text": rows.to_string()}]);
    let dir = tool_server(&json!({"content": content, "structuredContent": rows}));
    let run = call_on_terminal(dir.path(), &[], 80);
    insta::assert_snapshot!(screen_text(&run.stdout, 80));
    let narrow = call_on_terminal(dir.path(), &[], 20);
    assert!(narrow.stdout.starts_with("{\n  \"result\": [\n"), "{}", narrow.stdout);
    let (on_pipe, _) = call_on_pipe(dir.path(), &["--output", "text"]);
    assert_eq!(String::from_utf8(on_pipe).unwrap().lines().count(), 3);
}

#[test]
fn raw_output_is_the_exact_text_or_the_bytes_of_the_only_blob() {
    let text = "a\u{1b}[2J\r\nno newline at the end";
    let dir = tool_server(&json!({"content": [{"type": "text", "text": text}]}));
    assert_eq!(call_on_pipe(dir.path(), &["--output", "raw"]).0, text.as_bytes());
    let on_terminal = call_on_terminal(dir.path(), &["--output", "raw"], 80);
    assert_eq!(on_terminal.stdout, "a\\u{1b}[2J\\u{d}\nno newline at the end\n");
    let image = json!({"type": "image", "mimeType": "image/png", "data": IMAGE_BASE64});
    let dir = tool_server(&json!({"content": [image]}));
    assert_eq!(call_on_pipe(dir.path(), &["--output", "raw"]).0, IMAGE);
    let dir = tool_server(&json!({"content": [], "structuredContent": {"n": 5}}));
    assert_eq!(call_on_pipe(dir.path(), &["--output", "raw"]).0, br#"{"n":5}"#);
}

#[test]
fn raw_output_of_several_blocks_keeps_the_text_and_saves_the_blobs() {
    let dir = tool_server(&every_block());
    let (stdout, stderr) = call_on_pipe(dir.path(), &["--output", "raw", "--save", "out"]);
    let stdout = String::from_utf8(stdout).unwrap();
    assert!(stdout.starts_with("First line\u{1b}[2J\nsecond line\nfx://one/"), "{stdout}");
    assert_eq!(stderr, "saved: image/png, 10 bytes: out/image.png\n");
    assert_eq!(fs::read(dir.path().join("out/image.png")).unwrap(), IMAGE);
}

/// Attack: files | the MIME type of an image is `../../etc/passwd` | each file is new and in the
/// chosen directory | Foreign text stays text
#[test]
fn saved_files_have_new_names_in_the_chosen_directory() {
    let image = json!({"type": "image", "mimeType": "image/png", "data": IMAGE_BASE64});
    let odd = json!({"type": "image", "mimeType": "../../etc/passwd", "data": IMAGE_BASE64});
    let dir = tool_server(&json!({"content": [image, odd, image]}));
    for _ in 0..2 {
        let run = call_on_terminal(dir.path(), &["--save", "new/out"], 80);
        assert_eq!(run.status.code(), Some(0), "{}", run.stderr);
    }
    let names = names_in(&dir.path().join("new/out"));
    let expected =
        ["file-2.bin", "file.bin", "image-2.png", "image-3.png", "image-4.png", "image.png"];
    assert_eq!(names, expected);
}

#[test]
fn a_blob_that_cannot_be_saved_is_an_error_beside_the_other_contents() {
    let result = json!({"content": [
        {"type": "image", "mimeType": "image/png", "data": "%%"},
        {"type": "text", "text": "kept"}
    ]});
    let dir = tool_server(&result);
    let run = call_on_terminal(dir.path(), &[], 80);
    assert_eq!((run.status.code(), &*run.stdout), (Some(1), "kept\n"));
    assert_eq!(run.stderr, "error: image/png: the data is not valid base64\n");
}

#[test]
fn an_error_of_the_tool_is_shown_with_its_text() {
    let dir = config_dir(fixture("one"));
    let run = run_on_terminal(&["call", "one.fail", "--config", "mcp.json"], dir.path(), 80);
    assert_eq!((run.status.code(), &*run.stdout), (Some(1), "failed as asked\n"));
    assert_eq!(run.stderr, "error: tool `one.fail` reported an error\n");
}

fn resource_server(contents: &Value) -> tempfile::TempDir {
    config_dir(fixture("one").with("--read-result", json!({"contents": contents})))
}

const READ: [&str; 4] = ["read", "fx://one/static", "--config", "mcp.json"];

#[test]
fn read_writes_the_bytes_of_a_blob_to_a_pipe_and_saves_them_on_a_terminal() {
    let blob = json!({"uri": "fx://one/static", "mimeType": "image/png", "blob": IMAGE_BASE64});
    let dir = resource_server(&json!([blob]));
    let output = run(&READ, dir.path());
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), IMAGE));
    let args = [&READ[..], &["--save", "out"]].concat();
    let on_terminal = run_on_terminal(&args, dir.path(), 80);
    assert_eq!(on_terminal.stdout, "fx://one/static, image/png, 10 bytes: out/image.png\n");
    let saved = run(&args, dir.path());
    assert_eq!(saved.stdout, b"");
    assert_eq!(
        String::from_utf8(saved.stderr).unwrap(),
        "saved: fx://one/static, image/png, 10 bytes: out/image-2.png\n"
    );
    assert_eq!(fs::read(dir.path().join("out/image-2.png")).unwrap(), IMAGE);
}

#[test]
fn read_prints_several_contents_one_after_another() {
    let contents = json!([
        {"uri": "fx://one/a", "text": "text a"},
        {"uri": "fx://one/b", "text": "text b\n"},
        {"uri": "fx://one/c", "mimeType": "application/pdf", "blob": "YQ=="}
    ]);
    let dir = resource_server(&contents);
    let args = [&READ[..], &["--save", "out"]].concat();
    let output = run(&args, dir.path());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "text a\ntext b\n");
    let run = run_on_terminal(&args, dir.path(), 80);
    let expected = "fx://one/a:\ntext a\nfx://one/b:\ntext b\n\
                    fx://one/c, application/pdf, 1 byte: out/file-2.pdf";
    assert_eq!(screen_text(&run.stdout, 80), expected);
}

#[test]
fn prompt_prints_text_resources_and_images_with_their_roles() {
    let image = json!({"type": "image", "mimeType": "image/png", "data": IMAGE_BASE64});
    let resource = json!({"type": "resource", "resource": {"uri": "fx://a", "text": "embedded"}});
    let messages = json!({"messages": [
        {"role": "user", "content": {"type": "text", "text": "Look at this:"}},
        {"role": "user", "content": image},
        {"role": "assistant", "content": resource}
    ]});
    let dir = config_dir(fixture("one").with("--prompt-result", messages));
    let args = ["prompt", "one.plain", "--save", "out", "--config", "mcp.json"];
    let expected = |name: &str| {
        format!(
            "user: Look at this:\nuser:\nimage/png, 10 bytes: out/{name}\nassistant:\nfx://a:\n\
             embedded"
        )
    };
    let run = run_on_terminal(&args, dir.path(), 80);
    assert_eq!(screen_text(&run.stdout, 80), expected("image.png"), "{}", run.stderr);
    let mut command = innkeeper(&args, dir.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(stdout, format!("{}\n", expected("image-2.png")));
}
