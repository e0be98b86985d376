//! Runs a chat until the model makes no more calls.

use std::error::Error;

use futures_util::Stream;

use super::response::ResponseItem;
use super::segment::TextSegment;
use super::{Chat, ChatError};
use crate::executor::ToolExecution;

/// The result of a chat run.
#[derive(Clone, Debug)]
pub struct ChatRunResult {
    /// All executions, response by response, in the order in which they ended.
    pub executions: Vec<ToolExecution>,
    /// The number of responses whose calls were run.
    pub iterations: usize,
    /// The number of calls in the last response that were not run after too many iterations.
    pub skipped_calls: usize,
}

/// The reason why a chat run ended early.
#[derive(Debug, thiserror::Error)]
pub enum ChatErrorRecord<E: Error + 'static> {
    /// The application could not send a request to its model.
    #[error("request to the model failed")]
    Model(#[source] E),
    /// The response could not be read.
    #[error(transparent)]
    Chat(#[from] ChatError),
}

impl Chat {
    /// Sends requests until the model makes no more calls, at most
    /// [`ChatSettings::max_tool_iterations`] times after the first response. `ask` gets `None`
    /// first, then the results of the calls as a message for the history. `show` gets every text
    /// segment of every response in order.
    ///
    /// Dropping the future ends the current response and cancels its calls.
    ///
    /// # Errors
    ///
    /// The error of `ask`, or [`ChatError`] if a response cannot be read.
    ///
    /// [`ChatSettings::max_tool_iterations`]: super::ChatSettings::max_tool_iterations
    pub async fn run<A, F, S, E>(
        &self,
        mut request_model: A,
        mut show: impl FnMut(TextSegment),
    ) -> Result<ChatRunResult, ChatErrorRecord<E>>
    where
        A: FnMut(Option<String>) -> F,
        F: Future<Output = Result<S, E>>,
        S: Stream<Item = String> + Send + Unpin + 'static,
        E: Error + 'static,
    {
        let turn = self.start_run();
        let mut all = ChatRunResult { executions: Vec::new(), iterations: 0, skipped_calls: 0 };
        let mut message = None;
        loop {
            let stream = request_model(message).await.map_err(ChatErrorRecord::Model)?;
            let mut response = turn.read_response(stream)?;
            while let Some(item) = response.next_item().await {
                match item {
                    ResponseItem::Segment(token) => show(token),
                    ResponseItem::Execution(execution) => all.executions.push(execution),
                }
            }
            all.skipped_calls = response.results.skipped_calls();
            message = response.results_as_message().await;
            if message.is_none() {
                return Ok(all);
            }
            all.iterations += 1;
        }
    }
}
