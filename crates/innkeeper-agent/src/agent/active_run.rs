//! The state that the clones of an agent share, and the run that changes the state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{RunResult, Statistics};
use crate::content::Content;
use crate::conversation::{Conversation, ConversationSnapshot};
use crate::run::{Run, RunConfig};

/// The state of an agent. No lock is held across an await or while code of the application runs.
#[derive(Clone, Default)]
pub(super) struct AgentState(Arc<Mutex<StateData>>);

#[derive(Default)]
struct StateData {
    /// The conversation; without messages while a run has it.
    conversation: Conversation,
    /// The conversation before the run in progress. Its messages share their contents with the run,
    /// so that a run of a long conversation starts without a copy of its call ids.
    before_run: ConversationSnapshot,
    statistics: Statistics,
    phase: RunPhase,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum RunPhase {
    #[default]
    Idle,
    Active,
    /// The conversation was cleared while the run was in progress.
    ActiveCleared,
}

impl AgentState {
    fn lock(&self) -> MutexGuard<'_, StateData> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn conversation(&self) -> Conversation {
        let state = self.lock();
        match state.phase {
            RunPhase::Idle => state.conversation.clone(),
            RunPhase::Active | RunPhase::ActiveCleared => {
                Conversation::from_snapshot(state.before_run.clone())
            }
        }
    }

    pub(super) fn statistics(&self) -> Statistics {
        self.lock().statistics.clone()
    }

    /// Creates a state with this conversation and a copy of the statistics.
    pub(super) fn with_conversation(&self, conversation: Conversation) -> Self {
        let statistics = self.statistics();
        let data = StateData { conversation, statistics, ..StateData::default() };
        Self(Arc::new(Mutex::new(data)))
    }

    pub(super) fn remove_last_exchange(&self) -> Option<Content> {
        let mut state = self.lock();
        match state.phase {
            RunPhase::Idle => state.conversation.remove_last_exchange(),
            RunPhase::Active | RunPhase::ActiveCleared => None,
        }
    }

    pub(super) fn clear(&self) {
        let mut state = self.lock();
        state.conversation = Conversation::new();
        state.before_run = ConversationSnapshot::default();
        state.phase = match state.phase {
            RunPhase::Idle => RunPhase::Idle,
            RunPhase::Active | RunPhase::ActiveCleared => RunPhase::ActiveCleared,
        };
    }

    /// Begins a run of the conversation; `None` if another run is in progress.
    pub(super) fn begin_run(&self, config: Arc<RunConfig>) -> Option<ActiveRun> {
        let mut state = self.lock();
        if state.phase != RunPhase::Idle {
            return None;
        }
        state.phase = RunPhase::Active;
        state.before_run = state.conversation.snapshot();
        let run = Run::new(config, std::mem::take(&mut state.conversation));
        Some(ActiveRun { run, state: self.clone(), is_finished: false })
    }
}

/// The run in progress. However the run ends, even by a drop, the agent gets the conversation back
/// with a result for every call.
pub(super) struct ActiveRun {
    pub(super) run: Run,
    state: AgentState,
    is_finished: bool,
}

impl ActiveRun {
    /// Ends a use of the conversation that is not a run.
    pub(super) fn release(mut self) {
        self.is_finished = true;
    }

    /// Counts the result, and ends the run.
    pub(super) fn finish(mut self, result: &RunResult) {
        self.is_finished = true;
        self.state.lock().statistics.count(result);
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        let conversation = match self.is_finished {
            true => self.run.take_conversation(),
            false => self.run.take_interrupted_conversation(),
        };
        let mut state = self.state.lock();
        state.before_run = ConversationSnapshot::default();
        match std::mem::take(&mut state.phase) {
            RunPhase::Active => state.conversation = conversation,
            RunPhase::ActiveCleared | RunPhase::Idle => {}
        }
    }
}
