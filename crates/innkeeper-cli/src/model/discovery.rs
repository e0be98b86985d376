//! Finds models that this machine can use, and suggests others.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use innkeeper_host::Environment;
use serde_json::Value;

use super::local_http::LocalHttpClient;
use super::{InstalledModel, cpu};

/// Timeout of a probe of a local server; a running server responds in a few milliseconds.
const PROBE_TIMEOUT: Duration = Duration::from_millis(300);

/// Maximum number of bytes in a model name that is shown.
const MAX_MODEL_NAME_BYTES: usize = 120;

/// Environment variables with API keys and their providers; the first variable of a provider wins.
const API_KEY_VARIABLES: [(&str, &str); 4] = [
    ("ANTHROPIC_API_KEY", "anthropic"),
    ("OPENAI_API_KEY", "openai"),
    ("GEMINI_API_KEY", "gemini"),
    ("GOOGLE_API_KEY", "gemini"),
];

#[derive(Debug)]
pub(crate) struct DiscoveryOptions<'a> {
    pub(crate) environment: &'a Environment,
    /// The model directory, if known.
    pub(crate) models_dir: Option<&'a Path>,
    pub(crate) ollama_port: u16,
    pub(crate) llama_server_port: u16,
    pub(crate) lm_studio_port: u16,
}

impl<'a> DiscoveryOptions<'a> {
    /// Creates options with the default ports of the servers.
    pub(crate) fn with_default_ports(
        environment: &'a Environment,
        models_dir: Option<&'a Path>,
    ) -> Self {
        Self {
            environment,
            models_dir,
            ollama_port: 11434,
            llama_server_port: 8080,
            lm_studio_port: 1234,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModelSource {
    /// A hosted service, with the variable that has its key.
    ApiKey { provider: &'static str, variable: &'static str },
    /// A server on this machine, with one of its models.
    LocalServer { server: InferenceServer, port: u16, model: Option<String> },
    /// The model installed by this program.
    Installed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InferenceServer {
    Ollama,
    LlamaCpp,
    LmStudio,
}

impl ModelSource {
    /// Returns the command that uses the model.
    pub(crate) fn command(&self) -> String {
        let ask_command = "innkeeper ask --demo \"What do the files say about wine?\" --provider";
        match self {
            Self::ApiKey { provider, .. } => format!("{ask_command} {provider}"),
            Self::LocalServer { server, port, model } => {
                let model = model.as_deref().unwrap_or("NAME");
                match server {
                    InferenceServer::Ollama => format!("{ask_command} ollama --model {model}"),
                    InferenceServer::LlamaCpp | InferenceServer::LmStudio => format!(
                        "{ask_command} openai-compatible --base-url http://127.0.0.1:{port}/v1 --model {model}"
                    ),
                }
            }
            Self::Installed => "innkeeper demo --model local".to_owned(),
        }
    }
}

/// Writes why the model is usable.
impl fmt::Display for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiKey { variable, .. } => write!(f, "`{variable}` is set"),
            Self::LocalServer { server, port, .. } => write!(f, "{server} responds on port {port}"),
            Self::Installed => f.write_str("the local model is installed"),
        }
    }
}

impl fmt::Display for InferenceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ollama => "Ollama",
            Self::LlamaCpp => "llama-server",
            Self::LmStudio => "LM Studio",
        })
    }
}

/// The usable models, with one line per suggestion for another model.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelSources {
    pub(crate) available: Vec<ModelSource>,
    pub(crate) suggestions: Vec<String>,
}

/// Probes all sources concurrently; takes at most one probe timeout.
pub(crate) async fn discover_models(options: &DiscoveryOptions<'_>) -> ModelSources {
    let mut sources = find_api_keys(options.environment);
    if let Ok(client) = LocalHttpClient::new(PROBE_TIMEOUT) {
        let (ollama, llama_server, lm_studio) = tokio::join!(
            probe_ollama(&client, options),
            probe_llama_server(&client, options),
            probe_lm_studio(&client, options)
        );
        sources.extend([ollama, llama_server, lm_studio].into_iter().flatten());
    }
    let supported = cpu::check_supported().is_ok();
    if supported
        && options
            .models_dir
            .is_some_and(|dir| matches!(InstalledModel::open_default(dir), Ok(Some(_))))
    {
        sources.push(ModelSource::Installed);
    }
    let suggestions = suggest_sources(&sources, supported);
    ModelSources { available: sources, suggestions }
}

fn find_api_keys(environment: &Environment) -> Vec<ModelSource> {
    let mut sources: Vec<ModelSource> = Vec::new();
    for (variable, provider) in API_KEY_VARIABLES {
        let set = environment.get(variable).is_some_and(|key| !key.trim().is_empty());
        let is_known = sources.iter().any(|source| matches!(source, ModelSource::ApiKey { provider: known, .. } if *known == provider));
        if set && !is_known {
            sources.push(ModelSource::ApiKey { provider, variable });
        }
    }
    sources
}

async fn probe_ollama(
    client: &LocalHttpClient,
    options: &DiscoveryOptions<'_>,
) -> Option<ModelSource> {
    let response = client.get_json(options.ollama_port, "/api/tags").await?;
    let models = response.get("models")?.as_array()?;
    let model = models.iter().find_map(|model| shell_safe_name(model.get("name")));
    Some(ModelSource::LocalServer {
        server: InferenceServer::Ollama,
        port: options.ollama_port,
        model,
    })
}

async fn probe_llama_server(
    client: &LocalHttpClient,
    options: &DiscoveryOptions<'_>,
) -> Option<ModelSource> {
    let port = options.llama_server_port;
    if client.get_json(port, "/health").await?.get("status")?.as_str()? != "ok" {
        return None;
    }
    // Many programs have a `/health` endpoint; a llama-server also lists its models.
    let model = first_listed_model(&client.get_json(port, "/v1/models").await?)?;
    Some(ModelSource::LocalServer { server: InferenceServer::LlamaCpp, port, model })
}

async fn probe_lm_studio(
    client: &LocalHttpClient,
    options: &DiscoveryOptions<'_>,
) -> Option<ModelSource> {
    let port = options.lm_studio_port;
    let model = first_listed_model(&client.get_json(port, "/v1/models").await?)?;
    Some(ModelSource::LocalServer { server: InferenceServer::LmStudio, port, model })
}

/// Returns the first model of a model list; `None` if the value is not a model list.
fn first_listed_model(response: &Value) -> Option<Option<String>> {
    let models = response.get("data")?.as_array()?;
    Some(models.iter().find_map(|model| shell_safe_name(model.get("id"))))
}

/// Returns a model name that a shell reads without quotes; the name comes from an untrusted server.
fn shell_safe_name(value: Option<&Value>) -> Option<String> {
    let name = value?.as_str()?;
    let typed = !name.is_empty() && name.len() <= MAX_MODEL_NAME_BYTES && !name.starts_with('-');
    (typed && name.chars().all(|c| c.is_ascii_alphanumeric() || "._:/@+-".contains(c)))
        .then(|| name.to_owned())
}

/// Returns suggestions for other models, one line each.
fn suggest_sources(sources: &[ModelSource], supported: bool) -> Vec<String> {
    let has_source = |predicate: fn(&ModelSource) -> bool| sources.iter().any(predicate);
    let mut lines = Vec::new();
    if supported && !has_source(|source| matches!(source, ModelSource::Installed)) {
        lines.push(
            "`innkeeper model fetch` (161 MB, no key), then `innkeeper demo --model local`".into(),
        );
    }
    let missing: Vec<&str> = ["anthropic", "openai", "gemini"]
        .into_iter()
        .filter(|candidate| !providers_with_key(sources).any(|provider| provider == *candidate))
        .collect();
    for provider in missing {
        let variable = API_KEY_VARIABLES
            .iter()
            .find(|(_, owner)| *owner == provider)
            .map_or("", |(name, _)| *name);
        let command = ModelSource::ApiKey { provider, variable }.command();
        lines.push(format!("`{variable}=… {command}`"));
    }
    if !has_source(|source| matches!(source, ModelSource::LocalServer { .. })) {
        let ollama =
            ModelSource::LocalServer { server: InferenceServer::Ollama, port: 0, model: None };
        lines.push(format!("start Ollama, then `{}`", ollama.command()));
    }
    lines
}

fn providers_with_key(sources: &[ModelSource]) -> impl Iterator<Item = &'static str> {
    sources.iter().filter_map(|source| match source {
        ModelSource::ApiKey { provider, .. } => Some(*provider),
        ModelSource::LocalServer { .. } | ModelSource::Installed => None,
    })
}

#[cfg(test)]
mod tests;
