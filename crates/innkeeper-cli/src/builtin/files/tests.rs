//! Tests of the files server on a real directory, with attempts to leave the directory.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::*;

struct FilesFixture {
    folder: tempfile::TempDir,
    files: FilesService,
}

/// Creates a directory `root` with a few files, and a secret file outside `root`.
fn files_fixture() -> FilesFixture {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("sub/deep")).unwrap();
    fs::write(root.join("a.txt"), "alpha\nbeta\n").unwrap();
    fs::write(root.join("sub/b.md"), "# beta\ngamma\n").unwrap();
    fs::write(root.join("raw.bin"), [0xff, 0x00]).unwrap();
    fs::write(dir.path().join("secret"), "beta secret").unwrap();
    let files = FilesService::open(&root).unwrap();
    FilesFixture { folder: dir, files }
}

impl FilesFixture {
    fn call(&mut self, tool: &str, arguments: Value) -> Result<ToolOutput, FailureMessage> {
        let Value::Object(arguments) = arguments else { panic!("no object") };
        self.files.call_tool(tool, arguments).expect("the tool is there")
    }

    fn structured(&mut self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).unwrap().structured
    }

    fn failure_message(&mut self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).unwrap_err()
    }

    fn root(&self) -> std::path::PathBuf {
        self.folder.path().join("root")
    }
}

const PATH_TOOLS: [&str; 3] = ["list_directory", "read_text_file", "file_info"];

/// Attack: files | a model passes paths outside of the served directory | each path is rejected
/// with the same message | Foreign text stays text
#[test]
fn paths_that_lead_out_are_rejected_alike_whether_or_not_they_exist() {
    let mut served = files_fixture();
    let secret = served.folder.path().join("secret").to_str().unwrap().to_owned();
    for path in
        ["..", "../secret", "../nothing", "sub/../../secret", "/etc/passwd", "/", secret.as_str()]
    {
        for tool in PATH_TOOLS {
            let message = served.failure_message(tool, json!({ "path": path }));
            assert_eq!(message, format!("`{path}` is outside the served directory"));
        }
        let write = json!({ "path": path, "content": "x" });
        let message = served.failure_message("write_file", write);
        assert!(message.contains("is outside"), "{path}: {message}");
        let message =
            served.failure_message("search_text", json!({ "query": "beta", "path": path }));
        assert!(message.contains("is outside"), "{path}: {message}");
    }
    assert_eq!(fs::read_to_string(secret).unwrap(), "beta secret");
}

/// Attack: files | links in the served directory lead outside | no link is read, written or
/// searched | Foreign text stays text
#[cfg(unix)]
#[test]
fn symbolic_links_that_lead_out_are_neither_read_nor_written_nor_searched() {
    use std::os::unix::fs::symlink;
    let mut served = files_fixture();
    symlink("../secret", served.root().join("link")).unwrap();
    symlink(served.folder.path(), served.root().join("up")).unwrap();
    symlink("../not-yet", served.root().join("dangling")).unwrap();
    for path in ["link", "up/secret", "up"] {
        let message = served.failure_message("read_text_file", json!({ "path": path }));
        assert!(message.contains("is outside"), "{path}: {message}");
    }
    for path in ["link", "up/new", "dangling"] {
        let message = served.failure_message("write_file", json!({ "path": path, "content": "x" }));
        assert!(message.contains("is outside"), "{path}: {message}");
    }
    assert_eq!(fs::read_to_string(served.folder.path().join("secret")).unwrap(), "beta secret");
    assert!(!served.folder.path().join("not-yet").exists());
    let result = served.structured("search_text", json!({ "query": "secret" }));
    assert_eq!(result["matches"], json!([]));
    assert!(!served.files.resources().unwrap().iter().any(|file| file["name"] == "link"));
}

#[cfg(unix)]
#[test]
fn symbolic_links_within_the_folder_are_followed_and_kept() {
    let mut served = files_fixture();
    std::os::unix::fs::symlink("sub/b.md", served.root().join("link")).unwrap();
    served.call("write_file", json!({ "path": "link", "content": "new" })).unwrap();
    assert!(served.root().join("link").is_symlink());
    assert_eq!(fs::read_to_string(served.root().join("sub/b.md")).unwrap(), "new");
    let read = served.structured("read_text_file", json!({ "path": "link" }));
    assert_eq!(read["path"], "sub/b.md");
}

/// Attack: files | the served directory contains a pipe | the pipe is not opened | No unbounded
/// wait
#[cfg(unix)]
#[test]
fn a_pipe_is_never_opened() {
    let mut served = files_fixture();
    let pipe = served.root().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let message = served.failure_message("read_text_file", json!({ "path": "pipe" }));
    assert_eq!(message, "`pipe` is not a regular file");
    served.structured("search_text", json!({ "query": "beta" }));
}

#[test]
fn a_folder_lists_its_entries_by_name() {
    let mut served = files_fixture();
    let listing = served.structured("list_directory", json!({ "path": "." }));
    assert_eq!(
        listing,
        json!({ "path": ".", "truncated": false, "entries": [
            { "name": "a.txt", "type": "file", "size": 11 },
            { "name": "raw.bin", "type": "file", "size": 2 },
            { "name": "sub", "type": "directory" },
        ]})
    );
    let message = served.failure_message("list_directory", json!({ "path": "a.txt" }));
    assert_eq!(message, "`a.txt` is not a directory");
}

#[test]
fn absolute_paths_within_the_folder_and_dots_that_stay_inside_are_fine() {
    let mut served = files_fixture();
    let absolute = served.root().join("a.txt").to_str().unwrap().to_owned();
    for path in [absolute.as_str(), "./sub/../a.txt", "sub/deep/../../a.txt"] {
        let read = served.structured("read_text_file", json!({ "path": path }));
        assert_eq!(read, json!({ "path": "a.txt", "text": "alpha\nbeta\n", "size": 11 }));
    }
}

#[test]
fn text_is_read_and_written_up_to_the_limit_that_the_error_names() {
    let mut served = files_fixture();
    let limit = usize::try_from(root::MAX_TEXT_BYTES).unwrap();
    let write = |length: usize| json!({ "path": "big", "content": "x".repeat(length) });
    assert_eq!(served.structured("write_file", write(limit))["size"], limit);
    assert_eq!(served.structured("read_text_file", json!({ "path": "big" }))["size"], limit);
    let message = served.failure_message("write_file", write(limit + 1));
    assert!(message.contains("1048577 bytes") && message.contains("(1 MiB)"), "{message}");
    fs::write(served.root().join("big"), "x".repeat(limit + 1)).unwrap();
    let message = served.failure_message("read_text_file", json!({ "path": "big" }));
    assert!(message.contains("1048577 bytes") && message.contains("(1 MiB)"), "{message}");
}

#[test]
fn writing_reports_whether_the_file_is_new_and_leaves_nothing_else_behind() {
    let mut served = files_fixture();
    let write = json!({ "path": "sub/new.txt", "content": "one" });
    assert_eq!(served.structured("write_file", write.clone())["created"], true);
    assert_eq!(served.structured("write_file", write)["created"], false);
    assert_eq!(fs::read_dir(served.root().join("sub")).unwrap().count(), 3);
    for (path, expected) in [
        ("none/x", "`none` does not exist"),
        ("sub", "`sub` is not a regular file"),
        (".", "`.` is not a regular file"),
        ("a.txt/x", "`a.txt` is not a directory"),
    ] {
        let write = json!({ "path": path, "content": "x" });
        assert_eq!(served.failure_message("write_file", write), expected);
    }
}

#[cfg(unix)]
#[test]
fn replacing_a_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut served = files_fixture();
    let path = served.root().join("a.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    served.call("write_file", json!({ "path": "a.txt", "content": "x" })).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_search_gives_path_line_and_text_and_skips_binary_files() {
    let mut served = files_fixture();
    let result = served.structured("search_text", json!({ "query": "beta" }));
    assert_eq!(
        result,
        json!({ "filesSearched": 2, "truncated": false, "matches": [
            { "path": "a.txt", "line": 2, "text": "beta" },
            { "path": "sub/b.md", "line": 1, "text": "# beta" },
        ]})
    );
    let result = served.structured("search_text", json!({ "query": "beta", "path": "sub" }));
    assert_eq!(result["matches"].as_array().unwrap().len(), 1);
    assert!(served.failure_message("search_text", json!({ "query": "" })).contains("`query`"));
}

/// Attack: files | a directory contains more entries and matches than the limits | the result is
/// truncated and says so | No unbounded memory
#[test]
fn lists_and_searches_stop_at_their_limits_and_report_truncation() {
    let mut served = files_fixture();
    let many_dir = served.root().join("many");
    fs::create_dir(&many_dir).unwrap();
    for index in 0..operations::MAX_ENTRIES {
        fs::write(many_dir.join(index.to_string()), "").unwrap();
    }
    let listing = served.structured("list_directory", json!({ "path": "many" }));
    assert_eq!(listing["truncated"], false);
    fs::write(many_dir.join("hits"), "hit\n".repeat(operations::MAX_MATCHES)).unwrap();
    let listing = served.structured("list_directory", json!({ "path": "many" }));
    assert_eq!(listing["truncated"], true);
    assert_eq!(listing["entries"].as_array().unwrap().len(), operations::MAX_ENTRIES);
    let search = || json!({ "query": "hit", "path": "many/hits" });
    assert_eq!(served.structured("search_text", search())["truncated"], false);
    fs::write(many_dir.join("hits"), "hit\n".repeat(operations::MAX_MATCHES + 1)).unwrap();
    let result = served.structured("search_text", search());
    assert_eq!(result["truncated"], true);
    assert_eq!(result["matches"].as_array().unwrap().len(), operations::MAX_MATCHES);
    assert_eq!(served.files.resources().unwrap().len(), resources::MAX_RESOURCES);
}

#[test]
fn a_walk_goes_as_deep_as_its_limit_and_no_deeper() {
    let dir = tempfile::tempdir().unwrap();
    let mut path = dir.path().to_owned();
    for _ in 1..walk::MAX_DEPTH {
        path.push("d");
    }
    fs::create_dir_all(path.join("d")).unwrap();
    fs::write(path.join("deepest"), "").unwrap();
    let walk = walk::walk_files(dir.path());
    assert_eq!((walk.files.len(), walk.truncated), (1, true));
    fs::write(path.join("d/too-deep"), "").unwrap();
    assert_eq!(walk::walk_files(dir.path()).files.len(), 1);
}

#[test]
fn files_are_resources_as_text_or_as_base64() {
    let mut served = files_fixture();
    let resources = served.files.resources().unwrap();
    let names: Vec<_> = resources.iter().map(|file| file["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a.txt", "raw.bin", "sub/b.md"]);
    let mut read = |index: usize| {
        let uri = resources[index]["uri"].as_str().unwrap();
        served.files.read_resource(uri).unwrap().unwrap()[0].clone()
    };
    assert_eq!(read(0)["text"], "alpha\nbeta\n");
    assert_eq!(read(1)["blob"], "/wA=");
    assert_eq!(read(2)["mimeType"], "text/markdown");
}

/// Attack: files | a resource URI leaves the served directory with `..` or percent encoding | the
/// resource does not exist | Foreign text stays text
#[test]
fn resources_outside_the_folder_do_not_exist() {
    let mut served = files_fixture();
    let base = uri::from_path(&served.root().canonicalize().unwrap());
    let paths = ["/../secret", "/%2e%2e/secret", "-beside/x", "/none", "/sub", ""];
    for uri in
        paths.map(|path| format!("{base}{path}")).iter().chain(&["file:///etc/passwd".into()])
    {
        assert!(served.files.read_resource(uri).is_none(), "{uri}");
    }
}

#[test]
fn invalid_arguments_are_reported_by_name() {
    let mut served = files_fixture();
    let message = served.failure_message("write_file", json!({ "path": "x" }));
    assert!(message.contains("missing field `content`"), "{message}");
    let message = served.failure_message("file_info", json!({ "path": "a.txt", "pathh": 1 }));
    assert!(message.contains("unknown field `pathh`"), "{message}");
    assert!(served.files.call_tool("no_such_tool", JsonObject::new()).is_none());
}

#[test]
fn every_tool_has_closed_schemas_and_honest_annotations() {
    let tools = files_fixture().files.tools();
    let reads = |tool: &Value| tool["annotations"]["readOnlyHint"] == true;
    for tool in &tools {
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{tool}");
            assert_eq!(tool[schema]["additionalProperties"], false, "{tool}");
        }
        assert!(tool["description"].as_str().is_some_and(|text| !text.is_empty()));
    }
    let writers: Vec<_> =
        tools.iter().filter(|tool| !reads(tool)).map(|tool| &tool["name"]).collect();
    assert_eq!(writers, ["write_file"]);
}

#[test]
fn only_a_folder_that_is_there_can_be_served() {
    let served = files_fixture();
    assert!(FilesService::open(&served.root().join("none")).is_err());
    assert!(FilesService::open(&served.root().join("a.txt")).is_err());
    assert!(FilesService::open(Path::new("")).is_err());
}
