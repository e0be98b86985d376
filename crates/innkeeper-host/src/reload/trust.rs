//! Who decides whether a server that a watched file names may be started.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::config::{Expanded, Limits, Oauth, Sandbox, ServerConfig, TransportConfig};

/// Whether what a watched file says is started.
///
/// A file can be written by others than the owner of the host, and a server is a program that runs
/// with the owner's rights.
#[derive(Clone)]
pub enum Trust {
    /// Whoever can write to the file may start programs.
    Everything,
    /// Each new server, and each whose launch has changed, is asked about, every time the file
    /// changes while the answer is no. What is asked must not wait: it has the host's thread.
    Ask(Arc<dyn Fn(&LaunchSpec) -> bool + Send + Sync>),
}

impl Trust {
    /// Asks `decide`.
    pub fn ask(decide: impl Fn(&LaunchSpec) -> bool + Send + Sync + 'static) -> Self {
        Self::Ask(Arc::new(decide))
    }

    pub(super) fn allows(&self, launch: &LaunchSpec) -> bool {
        match self {
            Self::Everything => true,
            Self::Ask(decide) => decide(launch),
        }
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Everything => "Everything",
            Self::Ask(_) => "Ask",
        })
    }
}

/// How a server is started or reached: what has to be seen to decide on it.
///
/// A text shows as it stands in the file; what its variables stand for is in
/// [`Expanded::expose`]. Values of variables and headers are not shown.
#[derive(Clone, Debug)]
pub struct LaunchSpec {
    /// The server's name.
    pub name: String,
    /// What is started, of a server that is a program.
    pub command: Option<Expanded>,
    /// Its arguments.
    pub args: Vec<Expanded>,
    /// Where it runs.
    pub cwd: Option<Expanded<PathBuf>>,
    /// The names of the variables it is given, and of those that are taken from it.
    pub env: Vec<String>,
    /// Whether it gets the host's whole environment.
    pub inherit_env: bool,
    /// Where it is reached, of a server that is elsewhere.
    pub url: Option<Expanded>,
    /// The names of the headers it is sent.
    pub headers: Vec<String>,
    /// The program that prints further headers, and its arguments.
    pub headers_helper: Vec<Expanded>,
    /// What it may use.
    pub limits: Limits,
    /// What it may touch.
    pub sandbox: Option<Sandbox>,
    /// How it is signed in at; secrets do not show.
    pub oauth: Option<Oauth>,
    fingerprint: [u8; 32],
}

impl LaunchSpec {
    pub(super) fn of(server: &ServerConfig) -> Self {
        let mut spec = Self {
            name: server.name.clone(),
            command: None,
            args: Vec::new(),
            cwd: None,
            env: Vec::new(),
            inherit_env: server.inherit_env,
            url: None,
            headers: Vec::new(),
            headers_helper: server.headers_helper.clone(),
            limits: server.limits,
            sandbox: server.sandbox.clone(),
            oauth: server.oauth.clone(),
            fingerprint: fingerprint(server),
        };
        match &server.transport {
            TransportConfig::Stdio { command, args, env, unset_env, cwd } => {
                spec.command = Some(command.clone());
                spec.args.clone_from(args);
                spec.cwd.clone_from(cwd);
                spec.env = env.keys().chain(unset_env).cloned().collect();
            }
            TransportConfig::Http { url, headers }
            | TransportConfig::Sse { url, headers }
            | TransportConfig::WebSocket { url, headers } => {
                spec.url = Some(url.clone());
                spec.headers = headers.keys().cloned().collect();
            }
        }
        spec
    }

    /// A SHA-256 over all of it in effect, the values that are not shown included, in hexadecimal:
    /// for applications that remember what was decided.
    pub fn fingerprint(&self) -> String {
        self.fingerprint.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether a decision on one holds for the other.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

fn fingerprint(server: &ServerConfig) -> [u8; 32] {
    let mut hash = Sha256::new();
    // With its length before it and a letter of its kind, no part can be taken for another.
    let mut part = |kind: u8, bytes: &[u8]| {
        hash.update([kind]);
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    part(b'n', server.name.as_bytes());
    part(b't', server.transport.kind().as_bytes());
    part(b'i', &[u8::from(server.inherit_env)]);
    match &server.transport {
        TransportConfig::Stdio { command, args, env, unset_env, cwd } => {
            part(b'c', command.expose().as_bytes());
            args.iter().for_each(|arg| part(b'a', arg.expose().as_bytes()));
            for (name, value) in env {
                part(b'v', name.as_bytes());
                part(b'=', value.expose().as_bytes());
            }
            unset_env.iter().for_each(|name| part(b'u', name.as_bytes()));
            if let Some(cwd) = cwd {
                part(b'd', cwd.expose().as_os_str().as_encoded_bytes());
            }
        }
        TransportConfig::Http { url, headers }
        | TransportConfig::Sse { url, headers }
        | TransportConfig::WebSocket { url, headers } => {
            part(b'l', url.expose().as_bytes());
            for (name, value) in headers {
                part(b'h', name.as_bytes());
                part(b'=', value.expose().as_bytes());
            }
        }
    }
    server.headers_helper.iter().for_each(|word| part(b'p', word.expose().as_bytes()));
    // What it may use and touch, and how it is signed in at; secrets are not in the text.
    let bounds = serde_json::json!([&server.limits, &server.sandbox, &server.oauth]);
    part(b'b', bounds.to_string().as_bytes());
    let oauth = server.oauth.iter();
    for secret in oauth.flat_map(Oauth::secrets) {
        part(b's', secret.expose().as_bytes());
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::config::{Config, Environment};

    fn spec(entry: &Value) -> LaunchSpec {
        let file = json!({"servers": {"one": entry}});
        let env = Environment::from_pairs([("KEY", "hunter2"), ("PROGRAM", "tool")]);
        let config = Config::from_value(&file, "mcp.json", Path::new("/"), &env).unwrap();
        LaunchSpec::of(&config.servers["one"])
    }

    #[test]
    fn all_is_shown_but_values_of_variables_and_headers() {
        let one = spec(&json!({"command": "${PROGRAM}", "args": ["-x"], "env": {"K": "${KEY}"}}));
        let command = one.command.as_ref().unwrap();
        assert_eq!((command.to_string(), &**command.expose()), ("${PROGRAM}".to_owned(), "tool"));
        assert_eq!((one.args[0].as_written(), &one.env[..]), ("-x", &["K".to_owned()][..]));
        let two = spec(&json!({"url": "https://a.example", "headers": {"Auth": "${KEY}"}}));
        assert_eq!(two.url.as_ref().unwrap().to_string(), "https://a.example");
        assert_eq!(two.headers, ["Auth"]);
        assert!(!format!("{one:?}{two:?}").contains("hunter2"));
    }

    #[test]
    fn whatever_changes_a_launch_changes_its_fingerprint_and_nothing_else_does() {
        let plain = json!({"command": "tool", "args": ["a", "b"], "env": {"A": "1"}});
        let first = spec(&plain);
        assert_eq!(first.fingerprint().len(), 64);
        let mut same = plain.clone();
        same["timeout"] = json!(3);
        same["command"] = json!("${PROGRAM}");
        assert!(spec(&same).is(&first));
        for (key, value) in [
            ("command", json!("other")),
            ("args", json!(["ab"])),
            ("args", json!(["a"])),
            ("env", json!({"A": "2"})),
            ("env", json!({"A": null})),
            ("cwd", json!("/")),
            ("inheritEnv", json!(true)),
            ("sandbox", json!({"write": ["/"]})),
            ("limits", json!({"processes": 9})),
        ] {
            let mut other = plain.clone();
            other[key] = value;
            assert!(!spec(&other).is(&first), "{other}");
        }
        let remote = |helper| spec(&json!({"url": "https://a.example", "headersHelper": helper}));
        assert!(!remote(json!("one")).is(&remote(json!("other"))));
        assert!(!remote(json!(["one", "a"])).is(&remote(json!("one"))));
    }
}
