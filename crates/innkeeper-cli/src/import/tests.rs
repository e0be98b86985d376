//! Tests of the import with files as each host writes them.

mod other_programs;

use std::fs;

use innkeeper_host::config::name::MAX_NAME_CHARS;
use innkeeper_host::{Config, Environment};
use serde_json::{Value, json};

use super::*;

struct ImportFixture {
    _root: tempfile::TempDir,
    places: BaseDirectories,
}

impl ImportFixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let directories =
            BaseDirectories { home: root.path().join("home"), cwd: root.path().join("work") };
        let machine = Self { _root: root, places: directories };
        for (path, text) in files {
            let path = match path.strip_prefix("~/") {
                Some(rest) => machine.places.home.join(rest),
                None => machine.places.cwd.join(path),
            };
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        machine
    }

    fn import(&self, dialect: Option<SourceHost>) -> Result<ImportResult, ImportError> {
        import(dialect.map(ImportSource::Host).as_ref(), &self.places)
    }
}

/// Returns the notes without the note on the environment, which many files get.
fn note_texts(imported: &ImportResult) -> Vec<String> {
    let all = imported.notes.iter().map(ToString::to_string);
    all.filter(|note| !note.contains("`inheritEnv`")).collect()
}

/// Imports one file; returns its servers and notes.
fn import_file(dialect: SourceHost, path: &str, text: &str) -> (Value, Vec<String>) {
    let imported = ImportFixture::new(&[(path, text)]).import(Some(dialect)).unwrap();
    (imported.document()["servers"].clone(), note_texts(&imported))
}

const VSCODE_CONFIG: &str = r#"{
  // comments and trailing commas are allowed
  "inputs": [
    {"type": "promptString", "id": "api-key", "description": "The key", "password": true},
    {"type": "pickString", "id": "region", "options": ["eu", "us"], "default": "eu"},
  ],
  "servers": {
    "search": {
      "command": "npx", "args": ["-y", "search", "--port", 5],
      "env": {"KEY": "${input:api-key}", "REGION": "${input:region}", "N": 1, "OFF": null,
              "HOME_DIR": "${userHome}${/}x", "TOKEN": "${env:TOKEN}"},
      "envFile": "${workspaceFolder}/.env",
      "sandboxEnabled": false, "dev": {"watch": "**"}, "gallery": "x"
    },
    "api": {"type": "http", "url": "https://example.com/mcp", "headers": {"X-A": "b"},
            "oauth": {"clientId": "me"}},
    "empty": {},
  },
}"#;

#[test]
fn vscode_inputs_become_variables_and_all_else_is_converted_or_noted() {
    let machine = ImportFixture::new(&[(".vscode/mcp.json", VSCODE_CONFIG)]);
    let imported = machine.import(Some(SourceHost::Vscode)).unwrap();
    assert_eq!(
        imported.document()["servers"],
        json!({
            "search": {
                "type": "stdio", "command": "npx", "args": ["-y", "search", "--port", "5"],
                "env": {"KEY": "${API_KEY}", "REGION": "${REGION:-eu}", "N": "1", "OFF": null,
                        "HOME_DIR": "${userHome}${/}x", "TOKEN": "${TOKEN}"},
                "envFile": "${workspaceFolder}/.env",
            },
            "api": {"type": "http", "url": "https://example.com/mcp", "headers": {"X-A": "b"},
                    "oauth": {"clientId": "me"}},
        })
    );
    let notes = note_texts(&imported);
    insta::assert_snapshot!(notes.join("\n"), @r"
    `.vscode/mcp.json`: `${workspaceFolder}` refers to the directory of the new file
    `.vscode/mcp.json`: `${input:api-key}` became `${API_KEY}`: set `API_KEY` in the environment (The key)
    `.vscode/mcp.json`: `${input:region}` became `${REGION}`: set `REGION` in the environment
    `.vscode/mcp.json`: server `search`: `dev` is not imported: innkeeper does not watch or debug servers
    `.vscode/mcp.json`: server `search`: `sandboxEnabled` has no meaning here; not imported
    `.vscode/mcp.json`: server `search`: `gallery` has no meaning here; not imported
    `.vscode/mcp.json`: server `empty`: not imported: the definition has neither `command` nor `url`
    ");
}

#[test]
fn a_definition_without_a_transport_has_the_reason_in_its_note() {
    let text = r#"{"mcpServers": {"a": {"type": "stdio", "url": "https://a.example"},
        "b": {"command": ["npx", "x"]}, "c": {"type": "http", "command": "npx"}, "d": {"url": 7}}}"#;
    let (_, notes) = import_file(SourceHost::Claude, ".mcp.json", text);
    insta::assert_snapshot!(notes.join("\n"), @r"
    `.mcp.json`: server `a`: not imported: the type is `stdio`, but the definition has `url` and no `command`
    `.mcp.json`: server `b`: not imported: `command` is not a string
    `.mcp.json`: server `c`: not imported: the type is `http`, but the definition has `command` and no `url`
    `.mcp.json`: server `d`: not imported: `url` is not a string
    ");
}

#[test]
fn what_only_looks_like_a_variable_to_claude_desktop_and_codex_is_escaped() {
    let text = r#"{"globalShortcut": "x", "mcpServers": {
        "fs": {"command": "npx", "args": ["${HOME}", "$X $${Y}"], "env": {"A": "${"}}}}"#;
    let path = "~/.config/Claude/claude_desktop_config.json";
    let (servers, notes) = import_file(SourceHost::Claude, path, text);
    assert_eq!(servers["fs"]["args"], json!(["$${HOME}", "$X $$${Y}"]));
    assert_eq!(servers["fs"]["env"], json!({"A": "$${"}));
    assert!(notes.is_empty(), "{notes:?}");
    let text = "[mcp_servers.a]\ncommand = 'c'\nargs = ['${HOME}']";
    let (servers, _) = import_file(SourceHost::Codex, ".codex/config.toml", text);
    assert_eq!(servers["a"]["args"], json!(["$${HOME}"]));
}

#[test]
fn claude_code_reads_local_before_project_before_user() {
    let machine = ImportFixture::new(&[(
        ".mcp.json",
        r#"{"mcpServers": {"a": {"command": "project"}, "b": {"command": "project"},
            "c": {"type": "streamable-http", "url": "http://x", "headersHelper": "x",
                  "timeout": 1500}}}"#,
    )]);
    let cwd = machine.places.cwd.to_str().unwrap().to_owned();
    let user = json!({
        "numStartups": 5,
        "mcpServers": {"b": {"command": "user"}, "d": {"command": "user", "args": ["${X:-y}"]}},
        "projects": {cwd: {"mcpServers": {"a": {"command": "local"}},
                           "disabledMcpServers": ["d"]}},
    });
    fs::create_dir_all(&machine.places.home).unwrap();
    fs::write(machine.places.home.join(".claude.json"), user.to_string()).unwrap();
    let imported = machine.import(Some(SourceHost::Claude)).unwrap();
    let servers = &imported.document()["servers"];
    assert_eq!(servers["a"]["command"], "local");
    assert_eq!(servers["b"]["command"], "project");
    assert_eq!(servers.as_object().unwrap().len(), 4);
    let expected =
        json!({"type": "http", "url": "http://x", "timeout": 1.5, "headersHelper": ["x"]});
    assert_eq!(servers["c"], expected);
    assert_eq!(servers["d"]["disabled"], true);
    assert_eq!(servers["d"]["args"], json!(["${X:-y}"]));
    let notes = note_texts(&imported);
    assert_eq!(
        notes
            .iter()
            .filter(|note| note.contains("an earlier file has a server of the same name"))
            .count(),
        2,
        "{notes:?}"
    );
    assert!(
        notes.iter().any(|note| note.contains("imported with `\"disabled\": true`")),
        "{notes:?}"
    );
    assert_eq!(notes.len(), 3, "{notes:?}");
}

const CURSOR_CONFIG: &str = r#"{"mcpServers": {
        "a": {"url": "https://x", "auth": {"CLIENT_ID": "${env:ID}", "CLIENT_SECRET": "s",
              "scopes": ["r"], "extra": 1}},
        "b": {"type": "stdio", "command": "c", "envFile": ".env", "autoApprove": ["t"]}}}"#;

#[test]
fn cursor_sign_in_and_env_file_are_converted() {
    let (servers, notes) = import_file(SourceHost::Cursor, ".cursor/mcp.json", CURSOR_CONFIG);
    assert_eq!(
        servers,
        json!({
            "a": {"type": "http", "url": "https://x",
                  "oauth": {"clientId": "${ID}", "clientSecret": "s", "scopes": ["r"]}},
            "b": {"type": "stdio", "command": "c", "envFile": ".env"},
        })
    );
    assert_eq!(notes.len(), 2, "{notes:?}");
}

const GEMINI_CONFIG: &str = r#"{"theme": "x", "mcp": {"excluded": ["off"]}, "mcpServers": {
        "s": {"url": "https://x/sse", "timeout": 600000, "trust": true},
        "h": {"httpUrl": "https://x/mcp", "url": "https://ignored", "headers": {"A": "$KEY"}},
        "c": {"command": "c", "cwd": "./d", "includeTools": ["a"], "excludeTools": ["b"],
              "oauth": {"enabled": true, "scopes": ["r"], "redirectUri": "http://l"}},
        "off": {"command": "c"}}}"#;

#[test]
fn gemini_distinguishes_sse_from_http_and_filters_tools() {
    let (servers, notes) =
        import_file(SourceHost::Gemini, "~/.gemini/settings.json", GEMINI_CONFIG);
    assert_eq!(
        servers,
        json!({
            "s": {"type": "sse", "url": "https://x/sse", "timeout": 600},
            "h": {"type": "http", "url": "https://x/mcp", "headers": {"A": "${KEY}"}},
            "c": {"type": "stdio", "command": "c", "cwd": "./d",
                  "tools": {"allow": ["a"], "deny": ["b"]}, "oauth": {"scopes": ["r"]}},
            "off": {"type": "stdio", "command": "c", "disabled": true},
        })
    );
    let expected = ["`trust`", "`url`", "`oauth.redirectUri`", "`\"disabled\": true`"];
    assert!(notes.iter().zip(expected).all(|(note, key)| note.contains(key)), "{notes:?}");
    assert_eq!(notes.len(), expected.len());
}

const CODEX_CONFIG: &str = r#"
        model = "x"
        [mcp_servers.a]
        command = "c"
        args = ["--x"]
        env_vars = ["TOKEN", { name = "FAR", source = "remote" }, { name = "NEAR" }]
        startup_timeout_sec = 20
        tool_timeout_sec = 1.5
        enabled_tools = ["t"]
        disabled_tools = ["u"]
        enabled = false
        required = true
        default_tools_approval_mode = "auto"
        [mcp_servers.a.env]
        A = "b"
        [mcp_servers.b]
        url = "https://x"
        bearer_token_env_var = "BEARER"
        http_headers = { "X-A" = "1" }
        env_http_headers = { "X-B" = "VAR" }
    "#;

#[test]
fn codex_names_of_variables_become_references() {
    let (servers, notes) = import_file(SourceHost::Codex, "~/.codex/config.toml", CODEX_CONFIG);
    assert_eq!(
        servers,
        json!({
            "a": {"type": "stdio", "command": "c", "args": ["--x"],
                  "env": {"A": "b", "TOKEN": "${TOKEN}", "NEAR": "${NEAR}"},
                  "disabled": true, "required": true, "initTimeout": 20, "timeout": 1.5,
                  "tools": {"allow": ["t"], "deny": ["u"]}},
            "b": {"type": "http", "url": "https://x",
                  "headers": {"X-A": "1", "X-B": "${VAR}", "Authorization": "Bearer ${BEARER}"}},
        })
    );
    assert_eq!(notes.len(), 3, "{notes:?}");
}

const WINDSURF_CONFIG: &str = r#"{"mcpServers": {
        "a": {"serverUrl": "https://x/mcp", "headers": {"A": "${env:KEY}"}},
        "b": {"command": "npx -y 'some pkg'", "args": ["--x"], "disabled": true,
              "disabledTools": ["t"], "alwaysAllow": ["u"]}}}"#;

#[test]
fn a_command_with_arguments_is_split_and_a_disabled_server_is_noted() {
    let path = "~/.codeium/windsurf/mcp_config.json";
    let (servers, notes) = import_file(SourceHost::Windsurf, path, WINDSURF_CONFIG);
    assert_eq!(
        servers,
        json!({
            "a": {"type": "http", "url": "https://x/mcp", "headers": {"A": "${KEY}"}},
            "b": {"type": "stdio", "command": "npx", "args": ["-y", "some pkg", "--x"],
                  "disabled": true, "tools": {"deny": ["t"]}},
        })
    );
    insta::assert_snapshot!(notes.join("\n"), @r#"
    `~/.codeium/windsurf/mcp_config.json`: server `b`: `alwaysAllow` is not imported: the application decides which calls need an approval
    `~/.codeium/windsurf/mcp_config.json`: server `b`: `command` contains arguments, which became elements of `args`
    `~/.codeium/windsurf/mcp_config.json`: server `b`: imported with `"disabled": true`, as in the file
    "#);
    let with_space = r#"{"mcpServers": {"a": {"command": "/opt/my tools/server"}}}"#;
    let (servers, notes) = import_file(SourceHost::Windsurf, path, with_space);
    assert_eq!(servers["a"], json!({"type": "stdio", "command": "/opt/my tools/server"}));
    assert!(notes.is_empty(), "{notes:?}");
}

const OPENCODE_CONFIG: &str = r#"{"$schema": "x", "theme": "y", "mcp": {
        // the first version
        "a": {"type": "local", "command": ["npx", "-y", "a"], "cwd": "d", "timeout": 5000,
              "environment": {"KEY": "{env:KEY}", "T": "${X}"}, "enabled": false},
        "b": {"type": "remote", "url": "https://x/mcp", "oauth": {"clientId": "me", "scope": "r w"},
              "headers": {"Authorization": "Bearer {env:KEY}", "F": "{file:./key}"}},
        "c": {"enabled": false},
    }}"#;

#[test]
fn opencode_lists_of_words_and_references_are_converted_in_both_versions() {
    let (servers, notes) = import_file(SourceHost::Opencode, "opencode.json", OPENCODE_CONFIG);
    let first = json!({
        "a": {"type": "stdio", "command": "npx", "args": ["-y", "a"], "cwd": "d", "timeout": 5,
              "env": {"KEY": "${KEY}", "T": "$${X}"}, "disabled": true},
        "b": {"type": "http", "url": "https://x/mcp",
              "headers": {"Authorization": "Bearer ${KEY}", "F": "{file:./key}"},
              "oauth": {"clientId": "me", "scopes": ["r", "w"]}},
    });
    assert_eq!(servers, first);
    assert_eq!(notes.len(), 3, "{notes:?}");
    let second = r#"{"mcp": {"timeout": {"startup": 1}, "servers": {
        "a": {"type": "local", "command": ["x"], "disabled": true,
              "timeout": {"startup": 9000, "request": 1500}},
        "b": {"type": "remote", "url": "https://x", "oauth": {"client_id": "me"}}}}}"#;
    let (servers, _) =
        import_file(SourceHost::Opencode, "~/.config/opencode/opencode.jsonc", second);
    assert_eq!(
        servers,
        json!({
            "a": {"type": "stdio", "command": "x", "disabled": true, "timeout": 1.5,
                  "initTimeout": 9},
            "b": {"type": "http", "url": "https://x", "oauth": {"clientId": "me"}},
        })
    );
}

const ZED_CONFIG: &str = r#"{"theme": "x", "context_servers": {
        "a": {"source": "custom", "command": "x", "args": ["${HOME}"], "env": {}, "timeout": 90},
        "b": {"command": {"path": "y", "args": ["-v"], "env": null}, "enabled": false},
        "c": {"url": "https://x/mcp", "headers": {"A": "1"}, "oauth": {"client_id": "me"}},
        "d": {"enabled": true, "settings": {"token": "s3cret"}}}}"#;

#[test]
fn zed_commands_are_converted_and_extensions_are_noted() {
    let (servers, notes) = import_file(SourceHost::Zed, "~/.config/zed/settings.json", ZED_CONFIG);
    assert_eq!(
        servers,
        json!({
            "a": {"type": "stdio", "command": "x", "args": ["$${HOME}"], "env": {}, "timeout": 90},
            "b": {"type": "stdio", "command": "y", "args": ["-v"], "disabled": true},
            "c": {"type": "http", "url": "https://x/mcp", "headers": {"A": "1"},
                  "oauth": {"clientId": "me"}},
        })
    );
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(!notes.concat().contains("s3cret"));
}

#[test]
fn a_path_is_imported_in_the_format_of_its_host() {
    for (path, text, server) in [
        ("backup/x.json", r#"{"mcpServers": {"s": {"command": "c", "args": ["${A:-b}"]}}}"#, "s"),
        ("backup/claude_desktop_config.json", r#"{"mcpServers": {"s": {"command": "c"}}}"#, "s"),
        ("backup/config.toml", "[mcp_servers.s]\ncommand = 'c'", "s"),
        ("backup/any.jsonc", r#"{"mcp": {"s": {"type": "local", "command": ["c"]}}}"#, "s"),
        ("backup/settings.json", r#"{"context_servers": {"s": {"command": "c"}}}"#, "s"),
        ("backup/v.json", r#"{"servers": {"s": {"command": "c"}}, "inputs": []}"#, "s"),
    ] {
        let machine = ImportFixture::new(&[(path, text)]);
        let source = ImportSource::File(machine.places.cwd.join(path));
        let imported = import(Some(&source), &machine.places).unwrap();
        assert!(imported.errors.is_empty(), "{path}: {:?}", imported.errors);
        assert_eq!(imported.document()["servers"][server]["command"], "c", "{path}");
    }
}

#[test]
fn a_path_that_cannot_be_imported_is_an_error_that_names_it() {
    let machine = ImportFixture::new(&[("a.json", "{\"x\": 1}"), ("b.json", "{")]);
    for (path, part) in [
        ("a.json", "not a configuration of a known host"),
        ("b.json", "cannot parse"),
        ("none.json", "cannot read"),
        (".", "cannot read"),
    ] {
        let source = ImportSource::File(machine.places.cwd.join(path));
        let imported = import(Some(&source), &machine.places).unwrap();
        let error = imported.errors[0].to_string();
        assert!(error.contains(part) && error.contains(path), "{error}");
    }
}

#[test]
fn a_host_or_a_path_is_named_on_the_command_line() {
    assert_eq!(ImportSource::parse("zed"), Ok(ImportSource::Host(SourceHost::Zed)));
    assert_eq!(ImportSource::parse("a/zed"), Ok(ImportSource::File("a/zed".into())));
    assert_eq!(ImportSource::parse("zed.json"), Ok(ImportSource::File("zed.json".into())));
    assert!(ImportSource::parse("emacs").unwrap_err().contains("opencode"));
}

#[test]
fn without_a_host_all_files_are_read_and_every_server_keeps_a_name_of_its_own() {
    let machine = ImportFixture::new(&[
        (".mcp.json", r#"{"mcpServers": {"fs": {"command": "one"}}}"#),
        (".vscode/mcp.json", r#"{"servers": {"FS": {"command": "two"}}}"#),
        ("~/.cursor/mcp.json", r#"{"mcpServers": {"fs": {"command": "one"}}}"#),
    ]);
    let imported = machine.import(None).unwrap();
    let servers = &imported.document()["servers"];
    let names: Vec<_> = servers.as_object().unwrap().keys().collect();
    assert_eq!(names, ["fs", "FS-vscode"]);
    let notes = note_texts(&imported);
    insta::assert_snapshot!(notes.join("\n"), @r"
    `.vscode/mcp.json`: server `FS`: renamed to `FS-vscode`: an earlier server has the same name
    `~/.cursor/mcp.json`: server `fs`: imported once: an earlier file has the same definition
    ");
}

#[test]
fn a_malformed_file_is_an_error_that_names_it() {
    for (path, text, dialect) in [
        (".cursor/mcp.json", "{", SourceHost::Cursor),
        (".cursor/mcp.json", "[]", SourceHost::Cursor),
        (".cursor/mcp.json", r#"{"mcpServers": 5}"#, SourceHost::Cursor),
        (".codex/config.toml", "= 1", SourceHost::Codex),
        ("~/.claude.json", "{", SourceHost::Claude),
    ] {
        let imported = ImportFixture::new(&[(path, text)]).import(Some(dialect)).unwrap();
        assert!(imported.is_empty() && imported.files.is_empty());
        let [error] = &imported.errors[..] else { panic!("{:?}", imported.errors) };
        assert!(error.to_string().contains(path), "{error}");
    }
}

#[test]
fn a_malformed_file_does_not_affect_the_files_of_other_hosts() {
    let machine = ImportFixture::new(&[
        (".mcp.json", "{"),
        (".vscode/mcp.json", r#"{"servers": {"fs": {"command": "c"}}}"#),
        ("~/.codex/config.toml", "= 1"),
    ]);
    let imported = machine.import(None).unwrap();
    assert_eq!(imported.document()["servers"]["fs"]["command"], "c");
    assert_eq!(imported.files, [".vscode/mcp.json"]);
    let errors: Vec<_> = imported.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, ["cannot parse `.mcp.json`", "cannot parse `~/.codex/config.toml`"]);
}

#[test]
fn no_file_at_all_names_where_it_looked() {
    let error = ImportFixture::new(&[]).import(Some(SourceHost::Cursor)).unwrap_err();
    assert_eq!(error.to_string(), "no configuration of `cursor` found");
    let ImportError::NotFound { searched_files, .. } = error else { panic!("another error") };
    assert_eq!(searched_files, [".cursor/mcp.json", "~/.cursor/mcp.json"]);
}

#[test]
fn no_value_of_a_file_appears_in_a_note() {
    let text = r#"{"mcpServers": {"a": {"command": "c", "env": {"K": ["s3cret"]},
        "headersHelper": "s3cret", "other": "s3cret", "timeout": "s3cret"}}}"#;
    let (_, notes) = import_file(SourceHost::Claude, ".mcp.json", text);
    assert_eq!(notes.len(), 3);
    assert!(!notes.concat().contains("s3cret"));
}

#[test]
fn the_environment_that_servers_no_longer_get_is_mentioned_once_a_file() {
    let file = r#"{"servers": {"a": {"command": "x"}, "b": {"command": "y"}}}"#;
    let imported = ImportFixture::new(&[(".vscode/mcp.json", file)]).import(None).unwrap();
    assert_eq!(imported.notes.len(), 1);
    assert!(imported.notes[0].to_string().contains("`inheritEnv`"));
    let remote = r#"{"servers": {"a": {"url": "http://x"}}}"#;
    let imported = ImportFixture::new(&[(".vscode/mcp.json", remote)]).import(None).unwrap();
    assert!(imported.notes.is_empty());
}

#[test]
fn an_invalid_server_name_is_replaced_and_noted() {
    let long = "x".repeat(MAX_NAME_CHARS + 1);
    let servers = json!({
        "c\nd": {"url": "http://a"}, "cd": {"url": "http://b"}, "": {"url": "http://c"},
        "@scope/ü d": {"url": "http://d"}, long: {"url": "http://e"},
    });
    let file = json!({ "servers": servers }).to_string();
    let machine = ImportFixture::new(&[(".vscode/mcp.json", &*file)]);
    let imported = machine.import(None).unwrap();
    let document = imported.document();
    let names: Vec<_> = document["servers"].as_object().unwrap().keys().cloned().collect();
    let truncated = "x".repeat(MAX_NAME_CHARS);
    assert_eq!(names, ["cd", "cd-vscode", "server", "@scope/ü d", &*truncated]);
    let notes = note_texts(&imported).join("\n");
    assert!(notes.contains("renamed to `cd`: the name is not valid"), "{notes}");
    assert!(notes.contains("renamed to `cd-vscode`: an earlier server"), "{notes}");
    let env = Environment::default();
    Config::from_value(&document, "mcp.json", &machine.places.cwd, &env).unwrap();
}

#[test]
fn what_was_imported_is_a_configuration_without_an_error() {
    let machine = ImportFixture::new(&[
        (".vscode/mcp.json", VSCODE_CONFIG),
        (".cursor/mcp.json", CURSOR_CONFIG),
        ("~/.gemini/settings.json", GEMINI_CONFIG),
        ("~/.codex/config.toml", CODEX_CONFIG),
        ("~/.codeium/windsurf/mcp_config.json", WINDSURF_CONFIG),
        ("opencode.json", OPENCODE_CONFIG),
        (".zed/settings.json", ZED_CONFIG),
        (".env", ""),
    ]);
    let document = machine.import(None).unwrap().document();
    let names = ["API_KEY", "TOKEN", "NEAR", "ID", "KEY", "VAR", "BEARER", "HOME"];
    let env = Environment::from_pairs(names.map(|name| (name, "/x")));
    let config = Config::from_value(&document, "mcp.json", &machine.places.cwd, &env).unwrap();
    assert_eq!(config.servers.len() + config.disabled.len(), 17);
}
