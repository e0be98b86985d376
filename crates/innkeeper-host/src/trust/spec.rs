//! How a server is started or reached, as it is shown to whoever decides, and its fingerprint.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::loader;
use crate::config::{
    Config, Expanded, IdToken, Limits, Oauth, Sandbox, ServerConfig, TransportConfig, names_secret,
    without_secrets,
};
use crate::lock::{self, Package};

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
    /// The names of the variables it is given.
    pub env: Vec<String>,
    /// The names of those that are taken from it.
    pub unset_env: Vec<String>,
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
    /// The package it comes from, where a package runner fetches it.
    pub package: Option<Package>,
    fingerprint: [u8; 32],
}

impl LaunchSpec {
    /// Those of all servers of a configuration, in its order.
    pub fn all(config: &Config) -> Vec<Self> {
        config.servers.values().map(Self::of).collect()
    }

    pub(crate) fn of(server: &ServerConfig) -> Self {
        let mut spec = Self {
            name: server.name.clone(),
            command: None,
            args: Vec::new(),
            cwd: None,
            env: Vec::new(),
            unset_env: Vec::new(),
            inherit_env: server.inherit_env,
            url: None,
            headers: Vec::new(),
            headers_helper: server.headers_helper.clone(),
            limits: server.limits,
            sandbox: server.sandbox.clone(),
            oauth: server.oauth.clone(),
            package: lock::package_of(&server.transport),
            fingerprint: fingerprint(server),
        };
        match &server.transport {
            TransportConfig::Stdio { command, args, env, unset_env, cwd } => {
                spec.command = Some(command.clone());
                spec.args.clone_from(args);
                spec.cwd.clone_from(cwd);
                spec.env = env.keys().cloned().collect();
                spec.unset_env.clone_from(unset_env);
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

    /// Those of its variables that name code, or a command, which is then run in its place or
    /// beside it, whatever the command says: `LD_PRELOAD`, `NODE_OPTIONS` and their like.
    pub fn loaders(&self) -> impl Iterator<Item = &str> {
        self.env.iter().map(String::as_str).filter(|name| loader::is_loader(name))
    }

    /// What the variables in each of its arguments stand for, to be shown to the person who decides
    /// and to nobody else; `None` where there are none, or the text or the option before it looks
    /// as if one held a secret.
    pub fn meanings(&self) -> Vec<Option<String>> {
        meanings(&self.args)
    }

    /// The same of the words of the program that prints headers.
    pub fn helper_meanings(&self) -> Vec<Option<String>> {
        meanings(&self.headers_helper)
    }

    /// What the variables in its address stand for, in the same way.
    pub fn url_meaning(&self) -> Option<String> {
        self.url.as_ref().and_then(meaning)
    }

    /// Whether a decision on one holds for the other.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

fn meanings(words: &[Expanded]) -> Vec<Option<String>> {
    let before = std::iter::once(None).chain(words.iter().map(Some));
    let meant = words.iter().zip(before).map(|(word, before)| {
        let option = before.map(Expanded::as_written).filter(|text| text.starts_with('-'));
        meaning(word).filter(|_| !option.is_some_and(names_secret))
    });
    meant.collect()
}

fn meaning(text: &Expanded) -> Option<String> {
    let (value, written) = (text.expose(), text.as_written());
    let is_address = value.contains("://");
    let shown = if is_address { without_secrets(value) } else { value.clone() };
    (written.contains("${") && shown != written && !names_secret(written)).then_some(shown)
}

/// What a decision is about. A new key of a server has to be thought of here: it is part of the
/// launch, or it cannot change what is run or reached.
fn fingerprint(server: &ServerConfig) -> [u8; 32] {
    let ServerConfig {
        name,
        transport,
        inherit_env,
        limits,
        sandbox,
        oauth,
        headers_helper,
        // How long, how often and which of its tools: nothing that a launch is made of.
        key: _,
        position: _,
        required: _,
        dependencies: _,
        timeout: _,
        init_timeout: _,
        shutdown_timeout: _,
        max_total_timeout: _,
        max_concurrent: _,
        unavailable_after_timeouts: _,
        tools: _,
        restart: _,
        retry: _,
        cache: _,
        guard: _,
        extra: _,
    } = server;
    let mut hash = Sha256::new();
    // With its length before it and a letter of its kind, no part can be taken for another.
    let mut part = |kind: u8, bytes: &[u8]| {
        hash.update([kind]);
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    part(b'n', name.as_bytes());
    part(b't', transport.kind().as_bytes());
    part(b'i', &[u8::from(*inherit_env)]);
    match transport {
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
    headers_helper.iter().for_each(|word| part(b'p', word.expose().as_bytes()));
    // What it may use and touch, and how it is signed in at, as written: secrets and what variables
    // stand for are not in the text.
    let bounds = serde_json::json!([limits, sandbox, oauth]);
    part(b'b', bounds.to_string().as_bytes());
    for secret in oauth.iter().flat_map(Oauth::secrets) {
        part(b's', secret.expose().as_bytes());
    }
    let texts = oauth.iter().flat_map(|oauth| {
        [&oauth.client_id, &oauth.issuer, &oauth.client_metadata_url, &oauth.redirect_uri]
    });
    let enterprise = oauth.iter().flat_map(|oauth| &oauth.enterprise);
    let theirs = enterprise.flat_map(|one| [&one.issuer, &one.token_endpoint, &one.client_id]);
    for text in texts.flatten().chain(theirs) {
        part(b'o', text.expose().as_bytes());
    }
    let enterprise = oauth.iter().flat_map(|oauth| &oauth.enterprise);
    for token in enterprise.map(|one| &one.id_token) {
        if let IdToken::File(file) = token {
            part(b'f', file.expose().as_os_str().as_encoded_bytes());
        }
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
    fn what_variables_stand_for_is_shown_unless_it_looks_like_a_secret() {
        let behind = |option: &str, arg: &str| {
            spec(&json!({"command": "x", "args": [option, arg]})).meanings().remove(1)
        };
        let shown = |arg: &str| behind("-x", arg);
        assert_eq!(shown("run-${PROGRAM}?").as_deref(), Some("run-tool?"));
        assert_eq!(
            shown("https://me:${PROGRAM}@a.example/").as_deref(),
            Some("https://***@a.example/")
        );
        assert_eq!((shown("plain"), shown("${KEY}")), (None, None));
        assert_eq!(behind("--token", "${PROGRAM}"), None);
        let far = spec(&json!({"url": "https://${PROGRAM}/"}));
        assert_eq!(far.url_meaning().as_deref(), Some("https://tool/"));
    }

    #[test]
    fn packages_and_variables_that_load_code_are_among_what_is_shown() {
        let entry = json!({"command": "npx", "args": ["-y", "p"],
            "env": {"A": "1", "LD_PRELOAD": "x.so", "NODE_OPTIONS": null}});
        let one = spec(&entry);
        assert_eq!(one.loaders().collect::<Vec<_>>(), ["LD_PRELOAD"]);
        assert_eq!(one.unset_env, ["NODE_OPTIONS"]);
        let package = one.package.unwrap();
        assert_eq!((&*package.name, package.version), ("p", None));
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
            ("command", json!("${PROGRAM}s")),
        ] {
            let mut other = plain.clone();
            other[key] = value;
            assert!(!spec(&other).is(&first), "{other}");
        }
        let remote = json!({"url": "https://a.example", "headers": {"A": "1"}});
        let first = spec(&remote);
        for (key, value) in [
            ("url", json!("https://b.example")),
            ("type", json!("sse")),
            ("headers", json!({"A": "2"})),
            ("headers", json!({"B": "1"})),
            ("oauth", json!({"clientId": "me"})),
        ] {
            let mut other = remote.clone();
            other[key] = value;
            assert!(!spec(&other).is(&first), "{other}");
        }
    }
}
