//! Files of programs that innkeeper does not look for, and what the reader of `mcp.json` makes of them.

use super::*;

/// Imports a file of any program by its path.
fn import_any(name: &str, text: &str) -> ImportResult {
    let machine = ImportFixture::new(&[(name, text)]);
    let source = ImportSource::File(machine.places.cwd.join(name));
    import(Some(&source), &machine.places).unwrap()
}

#[test]
fn the_import_and_the_reader_agree_on_the_keys_of_other_programs() {
    let text = json!({"mcpServers": {
        "cline": {"transport": {"type": "stdio", "command": "a"}, "timeout": 60},
        "roo": {"command": "b", "disabledTools": ["x"], "alwaysAllow": ["y"]},
        "porter": {"baseUrl": "https://c.example/mcp", "bearerTokenEnv": "TOKEN", "auth": "oauth"},
        "big": {"command": "d", "timeout": 60000, "enabledTools": ["z"]},
    }})
    .to_string();
    let imported = import_any("mcp.json", &text);
    let servers = &imported.document()["servers"];
    assert_eq!(servers["cline"], json!({"type": "stdio", "command": "a", "timeout": 60}));
    assert_eq!(servers["roo"]["tools"], json!({"deny": ["x"]}));
    assert_eq!(servers["porter"]["headers"], json!({"Authorization": "Bearer ${TOKEN}"}));
    assert_eq!(
        (&servers["big"]["timeout"], &servers["big"]["tools"]),
        (&json!(60), &json!({"allow": ["z"]}))
    );
    let env = Environment::from_pairs([("TOKEN", "t")]);
    let load = |value: &Value| {
        Config::from_value(value, "mcp.json", std::path::Path::new("/nowhere"), &env).unwrap()
    };
    let (direct, converted) =
        (load(&serde_json::from_str(&text).unwrap()), load(&imported.document()));
    for (name, server) in &direct.servers {
        let other = &converted.servers[name];
        assert_eq!(
            (server.calls.timeout, &server.tools),
            (other.calls.timeout, &other.tools),
            "{name}"
        );
        assert_eq!(format!("{:?}", server.transport), format!("{:?}", other.transport));
    }
}

#[test]
fn a_restriction_that_cannot_be_kept_is_a_reason_not_to_import() {
    for entry in [
        r#""toolsDenied": ["x"]"#,
        r#""disabledTools": "x""#,
        r#""sandboxEnabled": true"#,
        r#""excludeTools": ["a"], "disabledTools": ["b"]"#,
    ] {
        let text = format!(r#"{{"mcpServers": {{"a": {{"command": "c", {entry}}}}}}}"#);
        let imported = import_any("x.json", &text);
        assert!(imported.is_empty(), "{entry}: {}", imported.document());
        assert!(note_texts(&imported)[0].contains("not imported: `"), "{:?}", imported.notes);
    }
}

#[test]
fn files_of_more_programs_are_read_or_refused_by_name() {
    for (name, text) in [
        ("amp.json", r#"{"amp.mcpServers": {"a": {"command": "x"}}}"#),
        ("list.json", r#"{"mcpServers": [{"name": "a", "command": "x"}]}"#),
        (
            "devcontainer.json",
            r#"{"customizations": {"vscode": {"mcp": {"servers": {"a": {"command": "x"}}}}}}"#,
        ),
    ] {
        assert_eq!(import_any(name, text).document()["servers"]["a"]["command"], "x", "{name}");
    }
    let yaml = import_any("config.yaml", "extensions:");
    assert!(yaml.errors[0].to_string().contains("is YAML"), "{:?}", yaml.errors);
    let codex = import_any("config.toml", "model = 'x'");
    assert!(codex.is_empty() && codex.errors.is_empty());
}

#[test]
fn a_variable_in_the_form_of_vscode_is_one_in_an_opencode_file_too() {
    let text = r#"{"mcp": {"a": {"type": "remote", "url": "https://x",
        "headers": {"A": "Bearer ${env:KEY}", "B": "${OTHER}"}}}}"#;
    let (servers, _) = import_file(SourceHost::Opencode, "opencode.json", text);
    assert_eq!(servers["a"]["headers"], json!({"A": "Bearer ${KEY}", "B": "$${OTHER}"}));
}
