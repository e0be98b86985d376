//! How a server is started or reached, as it is shown to whoever decides, and its fingerprint.

use std::path::{Path, PathBuf};

use serde_json::json;
use sha2::{Digest, Sha256};

use super::loader;
use crate::config::{
    Config, Expanded, GuardModes, IdToken, Limits, Oauth, Sandbox, ServerConfig, TransportConfig,
    names_secret, without_secrets,
};
use crate::lock::{self, Fetched, Package};

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
    /// Where it runs, as far as the file says it.
    pub cwd: Option<Expanded<PathBuf>>,
    /// Where its programs are started in effect, which is where relative paths among `command` and
    /// `args` begin: `cwd`, else the folder the application runs in. `None` where no program is
    /// started.
    pub directory: Option<PathBuf>,
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
    /// The packages it comes from, its own first, where a package runner fetches them.
    pub packages: Vec<Package>,
    /// Whether a package runner hands a text to a shell (`npx -c`), in which any package may be named.
    pub by_shell: bool,
    /// What of its traffic is looked at for attacks.
    pub guard: GuardModes,
    /// All that it is started by; the fingerprint is over this and the guard.
    launch: [u8; 32],
}

impl LaunchSpec {
    /// Those of all servers of a configuration, in its order.
    pub fn all(config: &Config) -> Vec<Self> {
        let here = config.environment.current_dir();
        config.servers.values().map(|server| Self::of(server, here)).collect()
    }

    /// `here` is the folder that the application says it runs in.
    pub(crate) fn of(server: &ServerConfig, here: Option<&Path>) -> Self {
        let directory = directory(server, here);
        let Fetched { packages, by_shell } = lock::fetched(&server.transport);
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
            packages,
            by_shell,
            guard: server.guard,
            launch: launch(server, directory.as_deref()),
            directory,
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
        let mut hash = Sha256::new_with_prefix(self.launch);
        hash.update(json!(self.guard).to_string());
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
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

    /// Whether a decision on the other holds for this one: it is started in the same way, and no less
    /// is looked at.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.launch == other.launch && self.guard.covers(other.guard)
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

/// Where the programs of a server are started.
fn directory(server: &ServerConfig, here: Option<&Path>) -> Option<PathBuf> {
    let cwd = match &server.transport {
        TransportConfig::Stdio { cwd, .. } => cwd.as_ref().map(|cwd| cwd.expose().clone()),
        TransportConfig::Http { .. }
        | TransportConfig::Sse { .. }
        | TransportConfig::WebSocket { .. }
            if server.headers_helper.is_empty() =>
        {
            return None;
        }
        TransportConfig::Http { .. }
        | TransportConfig::Sse { .. }
        | TransportConfig::WebSocket { .. } => None,
    };
    let directory = cwd.unwrap_or_else(|| here.unwrap_or(Path::new(".")).to_owned());
    Some(std::path::absolute(&directory).unwrap_or(directory))
}

/// What a decision is about, besides the guard. A new key of a server has to be thought of here: it is part of the
/// launch, or it cannot change what is run or reached.
fn launch(server: &ServerConfig, directory: Option<&Path>) -> [u8; 32] {
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
        // Beside it, since one that looks at more needs no decision.
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
        // Where it runs is below.
        TransportConfig::Stdio { command, args, env, unset_env, cwd: _ } => {
            part(b'c', command.expose().as_bytes());
            args.iter().for_each(|arg| part(b'a', arg.expose().as_bytes()));
            for (name, value) in env {
                part(b'v', name.as_bytes());
                part(b'=', value.expose().as_bytes());
            }
            unset_env.iter().for_each(|name| part(b'u', name.as_bytes()));
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
    // The same words name other programs from another place.
    if let Some(directory) = directory {
        part(b'd', directory.as_os_str().as_encoded_bytes());
    }
    headers_helper.iter().for_each(|word| part(b'p', word.expose().as_bytes()));
    // What it may use and touch, and how it is signed in at, as written: secrets and what variables
    // stand for are not in the text.
    let bounds = json!([limits, sandbox, oauth]);
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
mod tests;
