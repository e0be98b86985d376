//! Checks path arguments against the directories of the server's sandbox.
//!
//! The operating system enforces the sandbox; this check reports an attempt before the call, also
//! on systems without enforcement.

use std::path::Path;

use innkeeper_config::{SandboxConfig, ServerConfig, TransportConfig};
use reqwest::Url;

use super::credential_files::path_components;

/// The directories that a server may use, each as its path components.
#[derive(Debug)]
pub(super) struct SandboxPaths(Vec<Vec<String>>);

impl SandboxPaths {
    /// Returns the sandbox directories of a server; `None` if there are none or a directory is
    /// unknown.
    pub(super) fn from_config(config: &ServerConfig) -> Option<Self> {
        let SandboxConfig { read, write, .. } = config.confinement.sandbox.as_ref()?;
        let cwd = match &config.transport {
            TransportConfig::Stdio { cwd, .. } => cwd.as_ref().map(|cwd| cwd.expose().clone()),
            TransportConfig::Http { .. }
            | TransportConfig::Sse { .. }
            | TransportConfig::WebSocket { .. }
            | TransportConfig::InProcess => None,
        };
        let from = cwd.unwrap_or_default();
        let roots: Option<Vec<_>> =
            read.iter().chain(write).map(|path| absolute_components(&from.join(path))).collect();
        roots.filter(|roots| !roots.is_empty()).map(Self)
    }

    /// Returns whether a value is an absolute path outside all directories, or a relative path with
    /// too many `..`.
    pub(super) fn is_outside(&self, text: &str) -> bool {
        if is_file_url(text) {
            // A URL that is not a path leads to no directory of the server.
            let path = Url::parse(text).ok().and_then(|url| url.to_file_path().ok());
            return path.is_none_or(|path| path.to_str().is_none_or(|path| self.is_outside(path)));
        }
        if !Path::new(text).has_root() {
            return escapes_upwards(text);
        }
        let path = path_components(text);
        !self
            .0
            .iter()
            .any(|root| path.len() >= root.len() && root.iter().zip(&path).all(|(a, b)| a == b))
    }
}

/// Returns whether a value is a file URL: `file:` in any case, with any number of slashes.
pub(super) fn is_file_url(text: &str) -> bool {
    let text = text.trim_start();
    let scheme = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"));
    scheme && text[5..].starts_with(['/', '\\'])
}

/// Returns the components of a directory; `None` for a relative path, because the working directory
/// is unknown.
fn absolute_components(path: &Path) -> Option<Vec<String>> {
    let path = path.to_str().filter(|_| path.has_root())?;
    Some(path_components(path).into_iter().map(str::to_owned).collect())
}

/// Returns whether a relative path leaves its start directory.
fn escapes_upwards(path: &str) -> bool {
    let mut depth = 0_i32;
    for component in path.split(['/', '\\']) {
        match component {
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
    fn an_unknown_directory_excludes_nothing() {
        let to_sandbox = |entry: &serde_json::Value| {
            let file = serde_json::json!({"servers": {"one": entry}});
            let env = innkeeper_config::Environment::default();
            let config = crate::Config::from_value(&file, "mcp.json", "/".as_ref(), &env);
            SandboxPaths::from_config(&config.unwrap().servers["one"]).is_some()
        };
        let sandbox = serde_json::json!({"read": ["/srv"], "write": ["out"]});
        assert!(to_sandbox(
            &serde_json::json!({"command": "x", "cwd": "/srv", "sandbox": sandbox})
        ));
        assert!(!to_sandbox(&serde_json::json!({"command": "x", "sandbox": sandbox})));
        assert!(!to_sandbox(&serde_json::json!({"command": "x", "sandbox": {}})));
        assert!(!to_sandbox(&serde_json::json!({"command": "x"})));
    }

    /// Attack: data | a path that leaves the sandbox with `..`, percent encoding, `file:` or
    /// another host | the guard recognizes the path | Complete checks
    #[test]
    fn a_path_outside_every_directory_is_excluded_however_it_is_written() {
        let sandbox = SandboxPaths(vec![vec!["srv".into(), "files".into()], vec!["tmp".into()]]);
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
            assert!(!sandbox.is_outside(inside), "{inside}");
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
            assert!(sandbox.is_outside(outside), "{outside}");
        }
    }
}
