//! The model that is asked.

use std::path::Path;
use std::sync::Arc;

use innkeeper_agent::conversation::{Part, Said};
use innkeeper_agent::provider::{LlmProvider, Response, Scripted};
use innkeeper_agent::transport::{
    Endpoint, HttpProvider, Named, UnknownModel, Wanted, get_llm_client,
};
use innkeeper_host::Environment;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::args::AskArgs;
use crate::exit::Failure;
use crate::named;

/// The longest script: as long as the longest answer of a model.
const MAX_SCRIPT_BYTES: u64 = 64 << 20;

/// A model that can be asked.
pub(super) struct Model {
    pub(super) provider: Arc<dyn LlmProvider>,
    /// Where it is; a script is nowhere.
    pub(super) endpoint: Option<Endpoint>,
}

/// A model that was found; nothing has been sent to it.
pub(super) enum Found {
    Script(Scripted),
    Http(HttpProvider),
}

/// Finds the model that is named.
pub(super) fn find(args: &AskArgs, environment: &Environment) -> Result<Found, Failure> {
    let Some(provider) = &args.provider else { return Err(unnamed()) };
    if let Some(url) = &args.base_url {
        check(url)?;
    }
    if let Some(script) = args.script.as_deref().filter(|_| is_scripted(provider)) {
        return Ok(Found::Script(scripted(script)?));
    }
    let wanted = Wanted {
        provider: provider.clone(),
        model: args.model.clone(),
        base_url: args.base_url.clone(),
        api: args.api.clone(),
        key: None,
        key_variable: args.api_key_env.clone(),
    };
    let client = get_llm_client(&wanted, environment).map_err(|error| unknown(&error))?;
    Ok(Found::Http(client))
}

impl Found {
    /// Has a server that speaks like OpenAI say what it is.
    pub(super) async fn ready(self) -> Result<Model, Failure> {
        let mut client = match self {
            Self::Script(script) => {
                return Ok(Model { provider: Arc::new(script), endpoint: None });
            }
            Self::Http(client) => client,
        };
        if client.endpoint().provider == "openai-compatible" {
            let looked = client.look().await;
            looked.map_err(|error| Failure::failed("the model cannot be asked").because(error))?;
        }
        let endpoint = Some(client.endpoint().clone());
        Ok(Model { provider: Arc::new(client), endpoint })
    }
}

fn unnamed() -> Failure {
    let names = Named::ALL.map(Named::name).join(", ");
    Failure::usage("no model is named").hint(format!(
        "`--provider NAME` names one: {names}; `innkeeper demo` tells which this machine has"
    ))
}

/// Refuses what no model can be asked at, before anything is started or tried.
fn check(base_url: &str) -> Result<(), Failure> {
    let refused = |why: String| {
        Failure::usage(format!("`--base-url` is no address of a model: {why}"))
            .hint("write `https://HOST/…` or `http://HOST:PORT/…`")
    };
    let url = reqwest::Url::parse(base_url).map_err(|error| refused(error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(()),
        other => Err(refused(format!("`{other}` is not `http` or `https`"))),
    }
}

fn is_scripted(provider: &str) -> bool {
    provider.eq_ignore_ascii_case("scripted")
}

fn unknown(error: &UnknownModel) -> Failure {
    let failure = Failure::usage(error.to_string());
    match error {
        UnknownModel::Provider { .. } => failure.hint("`--provider` names one of them"),
        UnknownModel::Key { .. } => {
            failure.hint("`--api-key-env NAME` names another variable; keys are never typed")
        }
        UnknownModel::Api { .. } | UnknownModel::Missing { .. } => failure,
    }
}

/// One answer of a script.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spoken<'s> {
    #[serde(default)]
    text: String,
    #[serde(default, borrow)]
    calls: Vec<Called<'s>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Called<'s> {
    name: String,
    #[serde(borrow)]
    arguments: &'s RawValue,
}

fn scripted(file: &Path) -> Result<Scripted, Failure> {
    let shown = file.display();
    let text = named::read(file, MAX_SCRIPT_BYTES)
        .map_err(|error| Failure::usage(format!("`{shown}` cannot be read")).because(error))?;
    let script: Vec<Spoken<'_>> = serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("`{shown}` is no script")).because(error))?;
    Ok(Scripted::new(script.into_iter().map(|said| Ok(response(said)))))
}

fn response(said: Spoken<'_>) -> Response {
    let calls = said.calls.iter().map(|call| (&*call.name, call.arguments.get()));
    let mut response = Response::calls(calls);
    if !said.text.is_empty() {
        response.answer.parts.insert(0, Part::new(Said::Text(said.text)));
    }
    response
}
