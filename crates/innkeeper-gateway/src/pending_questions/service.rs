//! The questions of one gateway: the store with the settings.

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use innkeeper_host::audit;
use innkeeper_host::config::ApprovalConfig;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::question::{NewQuestion, Question, QuestionId};
use super::state::QuestionState;
use super::store::{LEASE_TIME, QuestionAdded, QuestionStore, StoreError};
use crate::item_names::ItemNames;

/// Time between two attempts to reach a store that does not respond.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Time after which a wait for the end of a question gives up on a store that does not respond.
const MAX_STORE_OUTAGE: Duration = LEASE_TIME;

/// Which questions a gateway asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionOptions {
    /// The tools whose calls need an approval, by any of their names, such as `SERVER.TOOL`; `*`
    /// matches any sequence of characters. Default: none.
    pub tools: Vec<String>,
    /// Time for an answer. Default: 1 hour.
    pub expiry: Duration,
    /// Whether operators answer elicitations of servers. Default: false.
    pub elicitations: bool,
}

impl Default for QuestionOptions {
    fn default() -> Self {
        Self::from(&ApprovalConfig::default())
    }
}

impl From<&ApprovalConfig> for QuestionOptions {
    fn from(config: &ApprovalConfig) -> Self {
        let ApprovalConfig { tools, expiry, elicitations } = config;
        Self { tools: tools.clone(), expiry: *expiry, elicitations: *elicitations }
    }
}

/// The questions of a gateway. Clones share the store.
#[derive(Clone, Debug)]
pub struct PendingQuestions {
    store: Arc<dyn QuestionStore>,
    options: QuestionOptions,
    process: Arc<str>,
}

impl PendingQuestions {
    /// Creates the questions of one process.
    pub fn new(store: Arc<dyn QuestionStore>, options: QuestionOptions) -> Self {
        let number = std::process::id();
        let random = Uuid::new_v4().simple().to_string();
        let process = format!("{number}-{}", random.get(..8).unwrap_or_default()).into();
        Self { store, options, process }
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn QuestionStore> {
        &self.store
    }

    /// Returns the settings.
    pub fn options(&self) -> &QuestionOptions {
        &self.options
    }

    pub(crate) fn process(&self) -> &str {
        &self.process
    }

    pub(crate) fn need_approval(&self, tool: &ItemNames) -> bool {
        self.options.tools.iter().any(|pattern| tool.match_pattern(pattern))
    }

    /// Adds a question and writes the line of the audit log.
    pub(crate) async fn ask(
        &self,
        id: QuestionId,
        question: &NewQuestion,
    ) -> Result<QuestionAdded, StoreError> {
        let added = self.store.add(id, question, self.options.expiry).await?;
        if added == QuestionAdded::Added {
            tracing::info!(
                target: audit::TARGET,
                server = question.tool.server,
                tool = question.tool.host_name,
                principal = question.asker.principal,
                question = %id,
                kind = question.kind.as_str(),
                audit = "question-asked",
                security = true,
                "question waits for an answer"
            );
        }
        Ok(added)
    }

    /// Waits until a question is not open any more, or until `deadline`. Returns the question; `None`
    /// if the store has no such question. A store that does not respond ends the wait after 30 seconds.
    pub(crate) async fn wait_for_end(
        &self,
        id: QuestionId,
        deadline: Option<Instant>,
    ) -> Result<Option<Question>, StoreError> {
        let mut responded = Instant::now();
        loop {
            let looking = async {
                let seen = self.store.changes(0).await?;
                Ok((seen, self.store.find(id).await?))
            };
            let (seen, question) = match looking.await {
                Ok(found) => found,
                Err(error) if responded.elapsed() >= MAX_STORE_OUTAGE => return Err(error),
                Err(_) => {
                    sleep(RETRY_DELAY).await;
                    continue;
                }
            };
            responded = Instant::now();
            let Some(question) = question else { return Ok(None) };
            let is_late = deadline.is_some_and(|deadline| deadline <= responded);
            if !question.state.is_open() || is_late {
                return Ok(Some(question));
            }
            let next = responded + next_look(&question);
            let next = deadline.map_or(next, |deadline| deadline.min(next));
            // An error of the wait is the error of the next look.
            let _ = tokio::time::timeout_at(next, self.store.changes(seen)).await;
        }
    }
}

/// Returns the time until an open question may change by itself.
fn next_look(question: &Question) -> Duration {
    let until_expiry = (question.times.expires - Utc::now()).to_std().unwrap_or_default();
    match question.state {
        // The clock of the store may differ a little.
        QuestionState::Waiting => until_expiry.clamp(Duration::from_millis(50), LEASE_TIME),
        _ => LEASE_TIME,
    }
}

/// Writes the line of the audit log for a question that got an answer or ended.
pub(crate) fn log_answer(question: &Question) {
    tracing::info!(
        target: audit::TARGET,
        server = question.content.tool.server,
        tool = question.content.tool.host_name,
        principal = question.content.asker.principal,
        question = %question.id,
        kind = question.content.kind.as_str(),
        state = question.state.as_str(),
        by = question.answer.by,
        why = question.answer.reason,
        audit = "question-answered",
        security = true,
        "question answered"
    );
}
