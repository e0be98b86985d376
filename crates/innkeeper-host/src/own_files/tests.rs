//! Tests of files that no sandbox may write.

use serde_json::{Value, json};

use super::*;

/// A directory with a configuration in `files`, and directories beside it.
struct Workspace(tempfile::TempDir);

impl Workspace {
    fn new(directories: &[&str]) -> Self {
        let workspace = Self(tempfile::tempdir().unwrap());
        for directory in ["files"].iter().chain(directories) {
            std::fs::create_dir_all(workspace.path(directory)).unwrap();
        }
        workspace
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A server that may write these paths, relative to the directory.
    fn server(&self, write: &[&str]) -> Value {
        json!({ "command": "sh", "cwd": self.0.path(), "sandbox": { "write": write } })
    }

    /// Writes a configuration and returns its problems when it is read by this path.
    fn problems(&self, servers: &Value, path: &str, protected: &[PathBuf]) -> Vec<Diagnostic> {
        let file = self.path("files/mcp.json");
        std::fs::write(&file, json!({ "servers": servers }).to_string()).unwrap();
        let path = if path.is_empty() { file } else { self.path(path) };
        writable_own_files(
            &Config::load_partial(&[path], &Environment::default()).unwrap(),
            protected,
        )
    }

    /// Returns which of these directories a server may not write if the configuration is read by this
    /// path.
    #[cfg(unix)]
    fn refused(&self, path: &str, directories: &[&str]) -> Vec<String> {
        let servers = directories.iter().map(|name| (name.replace('/', "-"), self.server(&[name])));
        let servers: Value = servers.collect::<serde_json::Map<_, _>>().into();
        let keys = self.problems(&servers, path, &[]).into_iter().map(|problem| problem.key);
        let names = keys.map(|key| key.split('.').nth(1).unwrap_or_default().to_owned());
        names.collect()
    }
}

/// Attack: sandbox | a server with a writable workspace rewrites `mcp.json` or `mcp.lock` there | the
/// server does not start | Confinement holds
#[test]
fn a_sandbox_that_may_write_the_configuration_or_the_lock_is_a_problem() {
    let workspace = Workspace::new(&["files/data"]);
    let problems = |write: &[&str]| {
        let server = json!({
            "command": "sh", "cwd": workspace.path("files"), "sandbox": { "write": write }
        });
        workspace.problems(&json!({ "one": server }), "", &[])
    };
    for write in [".", "data/..", "mcp.json", "/"] {
        let problems = problems(&["data", write]);
        let [problem] = &problems[..] else { panic!("{write}: {problems:?}") };
        assert_eq!(problem.key, "servers.one.sandbox.write");
        let lock = if write == "mcp.json" { "" } else { " and `mcp.lock`" };
        let expected = format!("`{write}` lets the server write `mcp.json`{lock}, and so choose");
        assert!(problem.message.starts_with(&expected), "{problem}");
    }
    assert_eq!(problems(&["data", "missing"]), []);
}

/// Attack: sandbox | a server replaces a link on the way to the configuration, which it may write, by a
/// directory or file of its own | the server does not start | Confinement holds
#[cfg(unix)]
#[test]
fn no_step_of_the_path_to_the_configuration_is_writable() {
    use std::os::unix::fs::symlink;

    let workspace = Workspace::new(&["links", "middle", "other", "other/deep"]);
    symlink(workspace.path("files"), workspace.path("links/current")).unwrap();
    symlink(workspace.path("files/mcp.json"), workspace.path("middle/mcp.json")).unwrap();
    symlink("../middle/mcp.json", workspace.path("links/chain.json")).unwrap();
    symlink("links/../links/current", workspace.path("way")).unwrap();
    let all = ["files", "links", "middle", "other"];
    for (path, expected) in [
        ("files/mcp.json", &["files"][..]),
        ("links/current/mcp.json", &["files", "links"]),
        ("middle/mcp.json", &["files", "middle"]),
        ("links/chain.json", &["files", "links", "middle"]),
        ("way/mcp.json", &["files", "links"]),
        ("other/../files/mcp.json", &["files"]),
        ("other/deep/../../files/mcp.json", &["files", "other"]),
    ] {
        assert_eq!(workspace.refused(path, &all), expected, "{path}");
    }
}

/// Attack: sandbox | a server writes the `envFile` of another server, or puts one there that does not exist
/// yet, with a variable that loads code | the server does not start; the error names the other server |
/// Confinement holds
#[test]
fn a_sandbox_that_may_write_the_variables_of_a_server_is_a_problem() {
    let workspace = Workspace::new(&["data", "other"]);
    for exists in [false, true] {
        if exists {
            std::fs::write(workspace.path("data/x.env"), "A=1\n").unwrap();
        }
        let servers = json!({
            "jail": workspace.server(&["other", "data"]),
            "free": { "command": "sh", "required": false, "envFile": "../data/x.env" },
        });
        let problems = workspace.problems(&servers, "", &[]);
        let [problem] = &problems[..] else { panic!("{problems:?}") };
        assert_eq!(problem.key, "servers.jail.sandbox.write");
        let expected = "`data` lets the server write `../data/x.env`, the `envFile` of server `free`, and \
                        so choose what that server loads";
        assert_eq!(problem.message, expected);
        assert!(problem.hint.as_ref().is_some_and(|hint| hint.contains("elsewhere")), "{problem}");
    }
}

/// A selection of servers starts fewer of them; the others start later.
#[test]
fn the_variables_of_a_server_that_is_not_selected_count_too() {
    let workspace = Workspace::new(&["data"]);
    std::fs::write(workspace.path("data/x.env"), "A=1\n").unwrap();
    let servers = json!({
        "jail": workspace.server(&["data"]), "free": { "command": "sh", "envFile": "../data/x.env" }
    });
    let file = workspace.path("files/mcp.json");
    std::fs::write(&file, json!({ "servers": servers }).to_string()).unwrap();
    let config = Config::from_file(&file).unwrap().select(&["jail"]).unwrap();
    assert_eq!(writable_own_files(&config, &[]).len(), 1);
}

#[cfg(unix)]
#[test]
fn a_dotenv_file_that_is_a_link_is_neither_replaced_nor_written() {
    let workspace = Workspace::new(&["data", "other"]);
    let dotenv = workspace.path("files/.env");
    std::os::unix::fs::symlink(workspace.path("data/variables"), dotenv).unwrap();
    assert_eq!(workspace.refused("", &["data", "other"]), ["data"]);
}

/// Attack: sandbox | a server with the home directory in `write` creates the configuration of the user, or
/// changes approvals | the server does not start | Confinement holds
#[test]
fn a_path_of_the_application_is_not_writable_whether_it_exists_or_not() {
    let workspace = Workspace::new(&["home/state/trust", "home/project", "other"]);
    let protected = ["home/config/mcp.json", "home/state"].map(|name| workspace.path(name));
    let message = |write: &str| {
        let servers = json!({ "one": workspace.server(&[write]) });
        workspace.problems(&servers, "", &protected).pop().map(|problem| problem.message)
    };
    let named = |path: &Path| {
        let path = path.display();
        Some(format!("`home` lets the server write `{path}`, which only the host may write"))
    };
    let both = named(&protected[0])
        .map(|text| text.replace(", which", &format!(" and `{}`, which", protected[1].display())));
    assert_eq!(message("home"), both);
    assert!(message("home/state").is_some() && message("home/state/trust").is_some());
    assert_eq!((message("home/project"), message("other")), (None, None));
}
