//! Tests of package runners and remote servers behind a private certificate authority: the registry's
//! certificate is trusted only through the variables that name the authority.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::innkeeper;
use crate::real_servers::install_dir;

/// Returns a `PATH` with the installed `uvx` and all programs.
fn search_path_with_uv(programs: &[&str]) -> String {
    search_path(programs, &format!("{}:", install_dir().join("uv/bin").display()))
}

/// Returns a `PATH` with all programs.
#[expect(clippy::disallowed_methods, reason = "the programs are found where the tests find them")]
fn search_path(programs: &[&str], before: &str) -> String {
    let path = format!("{before}{}", std::env::var("PATH").unwrap());
    for program in programs {
        let is_installed =
            std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
        assert!(is_installed, "`{program}` is not installed: run `cargo xtask install` once");
    }
    path
}

/// A package registry with the certificate of a private authority, until the test ends.
struct Registry {
    directory: TempDir,
    process: Child,
    origin: String,
    path: String,
}

impl Registry {
    fn start(path: String) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        create_certificates(root, &path);
        let package = root.join("www/package");
        fs::create_dir_all(&package).unwrap();
        let manifest = json!({"name": "tls-server", "version": "1.0.0", "bin": "server.js"});
        fs::write(package.join("package.json"), manifest.to_string()).unwrap();
        fs::write(package.join("server.js"), include_str!("certificates/server.js")).unwrap();
        fs::write(root.join("www/server.py"), include_str!("certificates/server.py")).unwrap();
        fs::write(root.join("registry.py"), include_str!("certificates/registry.py")).unwrap();
        let args = ["registry.py", "server.pem", "server.key", "www"];
        let mut process = program("python3", &path, root)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        stdout.read_line(&mut port).unwrap();
        let origin = format!("https://127.0.0.1:{}", port.trim());
        Self { directory, process, origin, path }
    }

    fn authority(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// Calls the tool of a server with these settings; the shell has these variables.
    fn call(&self, server: &Value, variables: &[(&str, &str)]) -> Output {
        let project = tempfile::tempdir_in(self.directory.path()).unwrap();
        let config = json!({
            "host": {"installTimeout": 60, "initTimeout": 60, "startTimeout": 120},
            "servers": {"tls": server},
        });
        fs::write(project.path().join("mcp.json"), config.to_string()).unwrap();
        innkeeper(&["call", "tls.ping", "--json", "--config", "mcp.json"], project.path())
            .env("PATH", &self.path)
            .env("HOME", project.path())
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "programs of the test, not of the product")]
fn program(name: &str, path: &str, directory: &Path) -> Command {
    let mut command = Command::new(name);
    command.current_dir(directory).env_clear().env("PATH", path).env("HOME", directory);
    command
}

/// Creates `ca.pem`, and `server.pem` with `server.key` for 127.0.0.1.
fn create_certificates(directory: &Path, path: &str) {
    let extensions = "basicConstraints=CA:FALSE\nsubjectAltName=IP:127.0.0.1\n";
    fs::write(directory.join("extensions"), extensions).unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    for line in [
        format!("req -x509 {key} -keyout ca.key -out ca.pem -subj /CN=authority -days 2"),
        format!("req {key} -keyout server.key -out server.csr -subj /CN=registry"),
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem \
         -days 2 -extfile extensions"
            .to_owned(),
    ] {
        let output = program("openssl", path, directory).args(line.split(' ')).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Asserts that the call fails without the authority and succeeds with the authority.
fn assert_needs_authority(
    registry: &Registry,
    server: &Value,
    settings: &[(&str, &str)],
    authority_variable: &str,
) {
    let output = registry.call(server, settings);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.to_lowercase().contains("certificate"), "{stderr}");
    let authority = registry.authority();
    let mut variables = settings.to_vec();
    variables.push((authority_variable, authority.to_str().unwrap()));
    let output = registry.call(server, &variables);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["content"][0]["text"], "pong");
}

#[test]
fn a_server_of_npx_starts_if_only_node_extra_ca_certs_names_the_authority() {
    let registry = Registry::start(search_path_with_uv(&["openssl", "python3", "node", "npx"]));
    let server = json!({"command": "npx", "args": ["-y", "tls-server"]});
    let settings = [
        ("npm_config_registry", &*registry.origin),
        ("npm_config_fetch_retries", "0"),
        ("npm_config_update_notifier", "false"),
        // A `cafile` of this machine would hide the variable.
        ("npm_config_globalconfig", "/nowhere/npmrc"),
    ];
    assert_needs_authority(&registry, &server, &settings, "NODE_EXTRA_CA_CERTS");
}

#[test]
fn a_server_of_uvx_starts_if_only_ssl_cert_file_names_the_authority() {
    let registry = Registry::start(search_path_with_uv(&["openssl", "python3", "uvx"]));
    let server = json!({"command": "uvx", "args": ["tls-server"]});
    let index = format!("{}/simple/", registry.origin);
    let settings =
        [("UV_DEFAULT_INDEX", &*index), ("UV_HTTP_RETRIES", "0"), ("UV_PYTHON_DOWNLOADS", "never")];
    assert_needs_authority(&registry, &server, &settings, "SSL_CERT_FILE");
}

#[test]
fn a_remote_server_is_not_reached_without_the_certificate_of_its_authority() {
    let registry = Registry::start(search_path(&["openssl", "python3"], ""));
    let server = json!({"url": format!("{}/mcp", registry.origin)});
    let empty = registry.directory.path().join("empty.pem");
    fs::write(&empty, "").unwrap();
    for (file, expected) in [
        (empty, "no TLS: unexpected error: No CA certificates were loaded from the system"),
        // The certificate of the server is no authority.
        (
            registry.directory.path().join("server.pem"),
            "hint: set the environment variable `SSL_CERT_FILE`",
        ),
        // The directory of packages is no MCP server.
        (registry.authority(), "HTTP status 501"),
    ] {
        let output = registry.call(&server, &[("SSL_CERT_FILE", file.to_str().unwrap())]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
}
