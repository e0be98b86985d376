//! Paths in arguments held against the folders that the owner has stated for the server's sandbox.
//!
//! The system enforces the sandbox; here an attempt is seen before it is made, and on systems that
//! enforce none.

use std::path::Path;

use reqwest::Url;

use super::files::parts;
use crate::config::{Sandbox, ServerConfig, TransportConfig};

/// The folders that a server may use, each as the parts of its path.
#[derive(Debug)]
pub(super) struct Folders(Vec<Vec<String>>);

impl Folders {
    /// Those of a server's sandbox; `None` where there is none, it has none, or it is not known which
    /// they are.
    pub(super) fn of(config: &ServerConfig) -> Option<Self> {
        let Sandbox { read, write, .. } = config.sandbox.as_ref()?;
        let cwd = match &config.transport {
            TransportConfig::Stdio { cwd, .. } => cwd.as_ref().map(|cwd| cwd.expose().clone()),
            TransportConfig::Http { .. }
            | TransportConfig::Sse { .. }
            | TransportConfig::WebSocket { .. } => None,
        };
        let from = cwd.unwrap_or_default();
        let folders: Option<Vec<_>> =
            read.iter().chain(write).map(|path| owned(&from.join(path))).collect();
        folders.filter(|folders| !folders.is_empty()).map(Self)
    }

    /// Whether a value is an absolute path outside all of them, or one that climbs to the outside.
    pub(super) fn exclude(&self, text: &str) -> bool {
        if is_file_address(text) {
            // What no path can be made of leads to no folder of the server.
            let path = Url::parse(text).ok().and_then(|url| url.to_file_path().ok());
            return path.is_none_or(|path| path.to_str().is_none_or(|path| self.exclude(path)));
        }
        if !Path::new(text).has_root() {
            return climbs(text);
        }
        let path = parts(text);
        !self.0.iter().any(|folder| {
            path.len() >= folder.len() && folder.iter().zip(&path).all(|(a, b)| a == b)
        })
    }
}

/// Whether a value is the address of a file: `file:` with any letters and any number of slashes.
pub(super) fn is_file_address(text: &str) -> bool {
    let text = text.trim_start();
    let scheme = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"));
    scheme && text[5..].starts_with(['/', '\\'])
}

/// The parts of a folder; a relative one starts where the host runs, which is not known here.
fn owned(path: &Path) -> Option<Vec<String>> {
    let path = path.to_str().filter(|_| path.has_root())?;
    Some(parts(path).into_iter().map(str::to_owned).collect())
}

/// Whether a relative path leads above where it starts.
fn climbs(path: &str) -> bool {
    let mut depth = 0_i32;
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth = depth.saturating_add(1),
        }
        if depth < 0 {
            return true;
        }
    }
    path.starts_with("~/")
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_known_excludes_nothing() {
        let of = |entry: &serde_json::Value| {
            let file = serde_json::json!({"servers": {"one": entry}});
            let env = crate::config::Environment::default();
            let config = crate::Config::from_value(&file, "mcp.json", "/".as_ref(), &env);
            Folders::of(&config.unwrap().servers["one"]).is_some()
        };
        let sandbox = serde_json::json!({"read": ["/srv"], "write": ["out"]});
        assert!(of(&serde_json::json!({"command": "x", "cwd": "/srv", "sandbox": sandbox})));
        assert!(!of(&serde_json::json!({"command": "x", "sandbox": sandbox})));
        assert!(!of(&serde_json::json!({"command": "x", "sandbox": {}})));
        assert!(!of(&serde_json::json!({"command": "x"})));
    }

    #[test]
    fn a_path_outside_every_folder_is_excluded_however_it_is_written() {
        let folders = Folders(vec![vec!["srv".into(), "files".into()], vec!["tmp".into()]]);
        for inside in [
            "/srv/files",
            "/srv/files/a/../b",
            "/tmp/x",
            "a/b",
            "a/../b",
            "file:///tmp/x",
            "file:/tmp/x",
            "file://localhost/tmp/%78",
            "FILE:///tmp/x",
        ] {
            assert!(!folders.exclude(inside), "{inside}");
        }
        for outside in [
            "/srv",
            "/srv/files/../x",
            "/srv/files2",
            "../x",
            "a/../../x",
            "~/x",
            "file:///etc",
            "FILE:///etc",
            "file:/etc",
            "file:///tmp/%2e%2e/etc",
            "file:///%65tc",
            "file://localhost/etc",
            "file://other/tmp/x",
            "file:///tmp/..%2f..%2fetc",
        ] {
            assert!(folders.exclude(outside), "{outside}");
        }
    }
}
