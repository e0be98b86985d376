//! Selects the model of a command.

use std::path::Path;
use std::sync::Arc;

use innkeeper_agent::conversation::{ContentPart, PartContent};
use innkeeper_agent::golden::GoldenRecorder;
use innkeeper_agent::provider::{LlmProvider, Response, ScriptedProvider};
use innkeeper_agent::transport::{
    Endpoint, HttpProvider, ModelLookupError, ModelSelector, ProviderId, get_llm_client,
};
use innkeeper_host::Environment;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cli::ModelSelectionArgs;
use crate::exit::CliError;
use crate::input_file;
use crate::local_model::{LocalModel, find_installed};
use crate::model::InstalledModel;

/// The provider that stands for the installed local model.
pub(crate) const LOCAL_PROVIDER: &str = "local";

/// The provider that reads its responses from a file.
const SCRIPTED_PROVIDER: &str = "scripted";

/// Maximum number of bytes in a script; equals the limit of one model response.
const MAX_SCRIPT_BYTES: u64 = 64 << 20;

/// A model that is ready for requests.
pub(crate) struct PreparedModel {
    pub(crate) provider: Arc<dyn LlmProvider>,
    /// The model for the requests of servers, which are not part of a recording.
    pub(crate) for_servers: Arc<dyn LlmProvider>,
    /// The endpoint of the model; `None` for a script.
    pub(crate) endpoint: Option<Endpoint>,
    /// The local model that this command started.
    pub(crate) local: Option<LocalModel>,
}

/// A selected model, before the first request.
pub(crate) enum SelectedModel {
    Script(ScriptedProvider),
    Http(HttpProvider),
    Local(InstalledModel),
}

pub(crate) fn select_model(
    args: &ModelSelectionArgs,
    environment: &Environment,
) -> Result<SelectedModel, CliError> {
    let Some(provider) = &args.provider else { return Err(missing_model_error()) };
    if provider.eq_ignore_ascii_case(LOCAL_PROVIDER) {
        return Ok(SelectedModel::Local(select_local_model(args, environment)?));
    }
    if let Some(url) = &args.base_url {
        check_base_url(url)?;
    }
    if let Some(script) = args.script.as_deref().filter(|_| is_scripted(provider)) {
        return Ok(SelectedModel::Script(load_script(script)?));
    }
    let selector = ModelSelector {
        provider: provider.clone(),
        model: args.name.clone(),
        base_url: args.base_url.clone(),
        api: args.api.clone(),
        key: None,
        key_variable: args.api_key_env.clone(),
    };
    let client = get_llm_client(&selector, environment).map_err(|error| lookup_error(&error))?;
    Ok(SelectedModel::Http(client))
}

impl SelectedModel {
    /// Detects the server's kind if the model is OpenAI-compatible, and starts a local model. The
    /// requests of the run pass through the recorder.
    pub(crate) async fn prepare(
        self,
        recorder: Option<&GoldenRecorder>,
    ) -> Result<PreparedModel, CliError> {
        let client = match self {
            Self::Script(_) if recorder.is_some() => {
                return Err(CliError::usage("a script has no bytes to record")
                    .with_hint("use a provider with an HTTP API, such as `ollama`"));
            }
            Self::Script(script) => {
                let provider = Arc::new(script);
                let for_servers = provider.clone();
                return Ok(PreparedModel { provider, for_servers, endpoint: None, local: None });
            }
            Self::Local(model) => {
                let local = LocalModel::start(&model, recorder).await?;
                let provider = local.provider.clone();
                let for_servers = local.for_servers.clone();
                let endpoint = Some(provider.endpoint().clone());
                return Ok(PreparedModel { provider, for_servers, endpoint, local: Some(local) });
            }
            Self::Http(client) => client,
        };
        let mut client = match recorder {
            Some(recorder) => recorder.record_model(&client),
            None => client,
        };
        if client.endpoint().provider == "openai-compatible" {
            let looked = client.probe_server().await;
            looked.map_err(|error| {
                CliError::failure("cannot connect to the model").with_source(error)
            })?;
        }
        let endpoint = client.endpoint().clone();
        let for_servers = Arc::new(HttpProvider::new(endpoint.clone()));
        let provider = Arc::new(client);
        let endpoint = Some(endpoint);
        Ok(PreparedModel { provider, for_servers, endpoint, local: None })
    }
}

fn select_local_model(
    args: &ModelSelectionArgs,
    environment: &Environment,
) -> Result<InstalledModel, CliError> {
    let options = [
        ("--base-url", args.base_url.is_some()),
        ("--api", args.api.is_some()),
        ("--api-key-env", args.api_key_env.is_some()),
    ];
    if let Some((option, _)) = options.iter().find(|(_, is_used)| *is_used) {
        return Err(CliError::usage(format!("`--provider {LOCAL_PROVIDER}` takes no `{option}`"))
            .with_hint("the program starts the local model and knows its address"));
    }
    let model = find_installed(environment)?;
    match &args.name {
        Some(name) if name != model.name() => {
            Err(CliError::usage(format!("the local model is `{}`, not `{name}`", model.name())))
        }
        _ => Ok(model),
    }
}

/// Returns the names for `--provider`.
pub(crate) fn provider_names() -> Vec<&'static str> {
    ProviderId::ALL.map(ProviderId::name).into_iter().chain([LOCAL_PROVIDER]).collect()
}

fn missing_model_error() -> CliError {
    let names = provider_names().join(", ");
    CliError::usage("no model selected").with_hint(format!(
        "use `--provider NAME` with one of {names}; run `innkeeper demo` to list the models of this machine"
    ))
}

/// Rejects an unusable base URL before any server starts.
fn check_base_url(base_url: &str) -> Result<(), CliError> {
    let usage_error = |reason: String| {
        CliError::usage(format!("invalid `--base-url`: {reason}"))
            .with_hint("use `https://HOST/…` or `http://HOST:PORT/…`")
    };
    let url = reqwest::Url::parse(base_url).map_err(|error| usage_error(error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(()),
        other => Err(usage_error(format!("the scheme `{other}` is not `http` or `https`"))),
    }
}

fn is_scripted(provider: &str) -> bool {
    provider.eq_ignore_ascii_case(SCRIPTED_PROVIDER)
}

fn lookup_error(error: &ModelLookupError) -> CliError {
    let failure = CliError::usage(error.to_string());
    match error {
        ModelLookupError::UnknownProvider { provider } => {
            let names: Vec<_> = provider_names()
                .into_iter()
                .chain([SCRIPTED_PROVIDER])
                .map(|name| format!("`{name}`"))
                .collect();
            let names = names.join(", ");
            CliError::usage(format!("unknown provider `{provider}`; supported: {names}"))
                .with_hint("use `--provider NAME` with a supported provider")
        }
        ModelLookupError::MissingKey { .. } => {
            failure.with_hint("set the variable, or name another variable with `--api-key-env NAME`; keys are not accepted as arguments")
        }
        ModelLookupError::UnknownApi { .. }
        | ModelLookupError::InvalidKey { .. }
        | ModelLookupError::MissingSetting { .. } => failure,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedReply<'s> {
    #[serde(default)]
    text: String,
    #[serde(default, borrow)]
    calls: Vec<ScriptedCall<'s>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCall<'s> {
    name: String,
    #[serde(borrow)]
    arguments: &'s RawValue,
}

fn load_script(file: &Path) -> Result<ScriptedProvider, CliError> {
    let display_path = file.display();
    let text = input_file::read(file, MAX_SCRIPT_BYTES).map_err(|error| {
        CliError::usage(format!("cannot read `{display_path}`")).with_source(error)
    })?;
    let script: Vec<ScriptedReply<'_>> = serde_json::from_str(&text).map_err(|error| {
        CliError::usage(format!("invalid script `{display_path}`")).with_source(error)
    })?;
    Ok(ScriptedProvider::new(script.into_iter().map(|reply| Ok(to_response(reply)))))
}

fn to_response(reply: ScriptedReply<'_>) -> Response {
    let calls = reply.calls.iter().map(|call| (&*call.name, call.arguments.get()));
    let mut response = Response::from_tool_calls(calls);
    if !reply.text.is_empty() {
        response.message.parts.insert(0, ContentPart::new(PartContent::Text(reply.text)));
    }
    response
}
