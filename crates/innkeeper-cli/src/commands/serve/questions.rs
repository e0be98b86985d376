//! The questions to operators, in the store that `serve` has.

use std::sync::Arc;

use innkeeper_gateway::RedisClient;
use innkeeper_gateway::pending_questions::store::{
    MemoryQuestionStore, QuestionStore, RedisQuestionStore,
};
use innkeeper_gateway::pending_questions::{PendingQuestions, QuestionOptions};
use innkeeper_host::config::ApprovalConfig;

use super::store::StoreSettings;
use crate::exit::CliError;
use crate::output::Output;

/// Returns the questions of operators, in the store of the connections; `None` if nothing waits for
/// an operator. Waits for a store that is not available.
pub(super) async fn pending_questions(
    approval: &ApprovalConfig,
    settings: &StoreSettings,
    redis: Option<&Arc<RedisClient>>,
    output: &mut Output,
) -> Result<Option<PendingQuestions>, CliError> {
    if !approval.is_configured() {
        return Ok(None);
    }
    let store: Arc<dyn QuestionStore> = match redis {
        None => Arc::new(MemoryQuestionStore::default()),
        Some(redis) => Arc::new(
            settings
                .retry(output, async || RedisQuestionStore::connect(redis.clone()).await)
                .await?,
        ),
    };
    Ok(Some(PendingQuestions::new(store, QuestionOptions::from(approval))))
}
