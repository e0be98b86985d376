//! The installed local model as the provider of one command.

use std::sync::Arc;

use innkeeper_agent::agent::AgentSettings;
use innkeeper_agent::conversation::HistoryBudget;
use innkeeper_agent::golden::GoldenRecorder;
use innkeeper_agent::provider::ProviderApi;
use innkeeper_agent::transport::{Endpoint, HttpProvider};
use innkeeper_host::Environment;

use crate::exit::CliError;
use crate::model::{InstalledModel, ModelServer, default_models_dir};

/// Maximum number of tokens in the history and the response; the model's context is 8,192 tokens.
const MAX_HISTORY_TOKENS: usize = 6000;
const MAX_RESPONSE_TOKENS: u32 = 200;

/// A served local model. Dropping the value kills the server.
pub(crate) struct LocalModel {
    server: ModelServer,
    pub(crate) provider: Arc<HttpProvider>,
    /// The same model without a recorder.
    pub(crate) for_servers: Arc<HttpProvider>,
}

impl LocalModel {
    /// Starts the server of the model and waits until it is ready.
    pub(crate) async fn start(
        model: &InstalledModel,
        recorder: Option<&GoldenRecorder>,
    ) -> Result<Self, CliError> {
        let server = model.serve(None).await?;
        let endpoint = Endpoint {
            base_url: server.base_url(),
            ..Endpoint::new("local", ProviderApi::OpenAiChat, server.model_name())
        };
        let mut provider = HttpProvider::new(endpoint);
        if let Some(recorder) = recorder {
            provider = recorder.record_model(&provider);
        }
        let probed = provider.probe_server().await;
        probed
            .map_err(|error| CliError::failure("cannot connect to the model").with_source(error))?;
        let for_servers = Arc::new(HttpProvider::new(provider.endpoint().clone()));
        Ok(Self { server, provider: Arc::new(provider), for_servers })
    }

    pub(crate) async fn stop(self) -> Result<(), CliError> {
        let stopped = self.server.stop().await;
        stopped
            .map_err(|error| CliError::failure("cannot stop the model server").with_source(error))
    }
}

/// Returns the installed model.
///
/// # Errors
///
/// The model is not installed, or damaged.
pub(crate) fn find_installed(environment: &Environment) -> Result<InstalledModel, CliError> {
    let dir = default_models_dir(environment).ok_or_else(not_installed)?;
    InstalledModel::open_default(&dir)?.ok_or_else(not_installed)
}

fn not_installed() -> CliError {
    CliError::failure("the local model is not installed")
        .with_hint("run `innkeeper model fetch` to install the model (161 MB)")
}

pub(crate) fn limit_settings(mut settings: AgentSettings) -> AgentSettings {
    let requests = &mut settings.requests;
    requests.history_budget = Some(HistoryBudget { max_tokens: MAX_HISTORY_TOKENS });
    requests.max_tokens = MAX_RESPONSE_TOKENS;
    requests.temperature = Some(0.0);
    settings
}
