//! Performs the effects of one run.

use super::model_client::ModelClient;
use super::tool_dispatcher::ToolDispatcher;
use super::{AgentEvent, EventSink};
use crate::content::Content;
use crate::conversation::{Conversation, ConversationError};
use crate::run::{Effect, Run, RunOutcome};
use crate::timing::Timing;

/// Performs the effects of a run until its outcome.
pub(super) struct RunDriver<'a> {
    pub(super) client: ModelClient<'a>,
    pub(super) dispatcher: ToolDispatcher<'a>,
    pub(super) timing: &'a Timing,
    /// Whether the sink shows what happens.
    pub(super) streaming: bool,
}

impl RunDriver<'_> {
    /// Starts the run with a message, and performs its effects. Dropping the future cancels pending
    /// requests and calls.
    pub(super) async fn execute(
        &mut self,
        run: &mut Run,
        message: Content,
        sink: &mut EventSink<'_>,
    ) -> Result<RunOutcome, ConversationError> {
        let mut added = AddedMessages::new(run.conversation(), self.streaming);
        let mut omitted = run.conversation().omitted_history().messages;
        let mut effect = run.start(message)?;
        added.report(run.conversation(), sink);
        loop {
            omitted = report_shortening(run, omitted, sink);
            for warning in run.take_warnings() {
                sink(AgentEvent::Warned(warning));
            }
            for tools in run.take_omitted_tools() {
                sink(AgentEvent::ToolsOmitted(tools));
            }
            if !matches!(effect, Effect::CallTools(_)) {
                self.dispatcher.add_rejected_calls(run, sink);
            }
            effect = match effect {
                Effect::Summarize { request, messages } => {
                    sink(AgentEvent::HistorySummaryStarted { messages });
                    self.client.next_effect(*request, run, sink).await
                }
                Effect::RequestPlan(request) => {
                    let next = self.client.next_effect(*request, run, sink).await;
                    if !run.plan().is_empty() {
                        sink(AgentEvent::Planned(run.plan().to_vec()));
                    }
                    next
                }
                Effect::SendRequest(request) => self.client.next_effect(*request, run, sink).await,
                Effect::Sleep(delay) => {
                    sink(AgentEvent::Retrying { delay });
                    self.timing.sleep(delay).await;
                    run.on_delay()
                }
                Effect::CallTools(planned) => self.dispatcher.dispatch(planned, run, sink).await,
                // `dispatch` reports every call of an effect before it returns, so no call is
                // pending here.
                Effect::AwaitTools => {
                    let reason = "no result for a pending call".to_owned();
                    return Ok(RunOutcome::NotSent { reason });
                }
                Effect::Finish(outcome) => return Ok(outcome),
            };
            added.report(run.conversation(), sink);
        }
    }
}

/// Reports the messages that a run adds.
struct AddedMessages {
    /// The number of messages that are reported; `None` if the sink shows no messages.
    reported: Option<u64>,
}

impl AddedMessages {
    fn new(conversation: &Conversation, is_shown: bool) -> Self {
        Self { reported: is_shown.then(|| conversation.added_messages()) }
    }

    fn report(&mut self, conversation: &Conversation, sink: &mut EventSink<'_>) {
        let Some(reported) = &mut self.reported else { return };
        let added = conversation.added_messages();
        let count = usize::try_from(added - *reported).unwrap_or(usize::MAX);
        *reported = added;
        let messages = conversation.messages();
        if count > 0 {
            let start = messages.len().saturating_sub(count);
            sink(AgentEvent::MessagesAdded(messages[start..].to_vec()));
        }
    }
}

/// Passes an event to the sink if requests leave out more messages than `before`. Returns the number
/// of these messages.
fn report_shortening(run: &Run, before: usize, sink: &mut EventSink<'_>) -> usize {
    let omitted = run.conversation().omitted_history();
    if omitted.messages > before {
        let is_summarized = omitted.summary.is_some() && !omitted.has_gap;
        sink(AgentEvent::HistoryShortened { messages: omitted.messages, is_summarized });
    }
    omitted.messages
}
