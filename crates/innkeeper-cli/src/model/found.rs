//! Which ways to a live model this machine has now, and which it could have.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use innkeeper_host::Environment;
use serde_json::Value;

use super::http::Local;
use super::{Model, cpu};

/// How long a server of this machine may take to answer; one that is there takes a few milliseconds.
const ANSWER: Duration = Duration::from_millis(300);

/// The longest name of a model that is shown.
const NAME: usize = 120;

/// The variables that hold keys, with the provider each is for; of one provider the first counts.
const KEYS: [(&str, &str); 4] = [
    ("ANTHROPIC_API_KEY", "anthropic"),
    ("OPENAI_API_KEY", "openai"),
    ("GEMINI_API_KEY", "gemini"),
    ("GOOGLE_API_KEY", "gemini"),
];

/// Where to look.
#[derive(Debug)]
pub(crate) struct Look<'a> {
    pub(crate) environment: &'a Environment,
    /// Where models are kept, if there is such a place.
    pub(crate) dir: Option<&'a Path>,
    pub(crate) ollama: u16,
    pub(crate) llama_server: u16,
    pub(crate) lm_studio: u16,
}

impl<'a> Look<'a> {
    /// At the ports on which the servers listen unless they are told otherwise.
    pub(crate) fn usual(environment: &'a Environment, dir: Option<&'a Path>) -> Self {
        Self { environment, dir, ollama: 11434, llama_server: 8080, lm_studio: 1234 }
    }
}

/// A way to a live model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A service, with the variable that holds its key.
    Key { provider: &'static str, variable: &'static str },
    /// A server on this machine, with a model it has.
    Server { server: Server, port: u16, model: Option<String> },
    /// The model that this program fetches.
    Fetched,
}

/// A server of models on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    Ollama,
    LlamaCpp,
    LmStudio,
}

impl Way {
    /// What to type.
    pub(crate) fn command(&self) -> String {
        let ask = "innkeeper ask --demo \"What do the files say about wine?\" --provider";
        match self {
            Self::Key { provider, .. } => format!("{ask} {provider}"),
            Self::Server { server, port, model } => {
                let model = model.as_deref().unwrap_or("NAME");
                match server {
                    Server::Ollama => format!("{ask} ollama --model {model}"),
                    Server::LlamaCpp | Server::LmStudio => format!(
                        "{ask} openai-compatible --base-url http://127.0.0.1:{port}/v1 --model {model}"
                    ),
                }
            }
            Self::Fetched => "innkeeper demo --model local".to_owned(),
        }
    }
}

/// What makes it a way.
impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { variable, .. } => write!(f, "`{variable}` is set"),
            Self::Server { server, port, .. } => write!(f, "{server} answers on port {port}"),
            Self::Fetched => f.write_str("the small local model is in place"),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ollama => "Ollama",
            Self::LlamaCpp => "llama-server",
            Self::LmStudio => "LM Studio",
        })
    }
}

/// The ways there are, and in one line each how to have another.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ways {
    pub(crate) found: Vec<Way>,
    pub(crate) possible: Vec<String>,
}

/// Looks for all of them at once; takes no longer than one server that does not answer.
pub(crate) async fn found_models(look: &Look<'_>) -> Ways {
    let mut found = keys(look.environment);
    if let Ok(client) = Local::new(ANSWER) {
        let (ollama, llama_server, lm_studio) = tokio::join!(
            ollama(&client, look),
            llama_server(&client, look),
            lm_studio(&client, look)
        );
        found.extend([ollama, llama_server, lm_studio].into_iter().flatten());
    }
    let able = cpu::able().is_ok();
    if able && look.dir.is_some_and(|dir| matches!(Model::installed(dir), Ok(Some(_)))) {
        found.push(Way::Fetched);
    }
    let possible = possible(&found, able);
    Ways { found, possible }
}

fn keys(environment: &Environment) -> Vec<Way> {
    let mut ways: Vec<Way> = Vec::new();
    for (variable, provider) in KEYS {
        let set = environment.get(variable).is_some_and(|key| !key.trim().is_empty());
        let known =
            |way: &Way| matches!(way, Way::Key { provider: other, .. } if *other == provider);
        if set && !ways.iter().any(known) {
            ways.push(Way::Key { provider, variable });
        }
    }
    ways
}

async fn ollama(client: &Local, look: &Look<'_>) -> Option<Way> {
    let answer = client.get(look.ollama, "/api/tags").await?;
    let models = answer.get("models")?.as_array()?;
    let model = models.iter().find_map(|model| name(model.get("name")));
    Some(Way::Server { server: Server::Ollama, port: look.ollama, model })
}

async fn llama_server(client: &Local, look: &Look<'_>) -> Option<Way> {
    let port = look.llama_server;
    if client.get(port, "/health").await?.get("status")?.as_str()? != "ok" {
        return None;
    }
    // Many programs are in good health; this one also has a list of models.
    let model = listed(&client.get(port, "/v1/models").await?)?;
    Some(Way::Server { server: Server::LlamaCpp, port, model })
}

async fn lm_studio(client: &Local, look: &Look<'_>) -> Option<Way> {
    let port = look.lm_studio;
    let model = listed(&client.get(port, "/v1/models").await?)?;
    Some(Way::Server { server: Server::LmStudio, port, model })
}

/// The first of a list of models, if it is one.
fn listed(answer: &Value) -> Option<Option<String>> {
    let models = answer.get("data")?.as_array()?;
    Some(models.iter().find_map(|model| name(model.get("id"))))
}

/// A name that can be typed as it is: a server says it, and a shell reads it.
fn name(said: Option<&Value>) -> Option<String> {
    let name = said?.as_str()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:/@+-".contains(c);
    let typed = !name.is_empty() && name.len() <= NAME && !name.starts_with('-');
    (typed && name.chars().all(plain)).then(|| name.to_owned())
}

/// What a person can do to have one more way, one line each.
fn possible(found: &[Way], able: bool) -> Vec<String> {
    let has = |wanted: fn(&Way) -> bool| found.iter().any(wanted);
    let mut lines = Vec::new();
    if able && !has(|way| matches!(way, Way::Fetched)) {
        lines.push(
            "`innkeeper model fetch` (160 MB, no key), then `innkeeper demo --model local`".into(),
        );
    }
    let missing: Vec<&str> = ["anthropic", "openai", "gemini"]
        .into_iter()
        .filter(|wanted| !keys_of(found).any(|provider| provider == *wanted))
        .collect();
    for provider in missing {
        let variable = KEYS.iter().find(|(_, of)| *of == provider).map_or("", |(name, _)| *name);
        let command = Way::Key { provider, variable }.command();
        lines.push(format!("`{variable}=… {command}`"));
    }
    if !has(|way| matches!(way, Way::Server { .. })) {
        let ollama = Way::Server { server: Server::Ollama, port: 0, model: None };
        lines.push(format!("with Ollama running, `{}`", ollama.command()));
    }
    lines
}

fn keys_of(found: &[Way]) -> impl Iterator<Item = &'static str> {
    found.iter().filter_map(|way| match way {
        Way::Key { provider, .. } => Some(*provider),
        Way::Server { .. } | Way::Fetched => None,
    })
}

#[cfg(test)]
mod tests;
