//! Replays a golden with the input of another run.

use innkeeper_golden::{Golden, Input};
use serde_json::value::to_raw_value;

use super::settings::SettingsRecord;
use crate::agent::AgentSettings;
use crate::transport::ProviderId;

/// What a run is given that a golden answers. The replay shows what depends on it: with another
/// prompt, for example, the first request is another one than the recorded.
#[derive(Clone, Copy, Debug)]
pub struct ReplayInput<'r> {
    /// The name of the provider, which must be the recorded one. `None` for the recorded one.
    pub provider: Option<&'r str>,
    /// The model. `None` for the recorded one.
    pub model: Option<&'r str>,
    /// The message of the user.
    pub user_prompt: &'r str,
    /// The namespace of the tools.
    pub namespace: &'r str,
    /// The settings of the agent, with the system prompt.
    pub settings: &'r AgentSettings,
}

/// Why a golden cannot answer a run.
#[derive(Debug, thiserror::Error)]
pub enum ReplayInputError {
    /// The run has another provider.
    #[error("the golden is a run with `{recorded}`, not with `{given}`")]
    OtherProvider {
        /// The provider of the golden.
        recorded: String,
        /// The provider of the run.
        given: String,
    },
    /// A golden cannot hold the value of a setting.
    #[error("a recording cannot hold the setting `{setting}`")]
    Setting {
        /// The name of the setting.
        setting: &'static str,
    },
    /// A value has no JSON form.
    #[error("cannot write the settings of the run")]
    Json(#[from] serde_json::Error),
}

impl ReplayInput<'_> {
    /// Returns the golden with this input in place of the recorded one.
    ///
    /// # Errors
    ///
    /// The run has another provider, or a setting that no golden has.
    pub fn apply(&self, golden: Golden) -> Result<Golden, ReplayInputError> {
        let recorded = &golden.input.provider;
        if let Some(given) = self.provider
            && !is_same_provider(recorded, given)
        {
            return Err(ReplayInputError::OtherProvider {
                recorded: recorded.clone(),
                given: given.to_owned(),
            });
        }
        let settings = SettingsRecord::new(self.settings)
            .map_err(|setting| ReplayInputError::Setting { setting })?;
        let model = self.model.map(str::to_owned);
        let input = Input {
            system_prompt: self.settings.system.clone(),
            model: model.unwrap_or_else(|| golden.input.model.clone()),
            user_prompt: self.user_prompt.to_owned(),
            namespace: self.namespace.to_owned(),
            settings: to_raw_value(&settings)?,
            ..golden.input
        };
        Ok(Golden { input, ..golden })
    }
}

/// Returns whether two names mean one provider. The local model is none of the list.
fn is_same_provider(recorded: &str, given: &str) -> bool {
    match ProviderId::from_name(given) {
        Some(id) => ProviderId::from_name(recorded) == Some(id),
        None => recorded.eq_ignore_ascii_case(given),
    }
}
