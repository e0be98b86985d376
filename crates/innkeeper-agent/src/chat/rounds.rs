//! A whole turn: the model answers, its calls are run, it is told what came of them, and so on.

use std::error::Error;

use futures_util::Stream;

use super::answer::Part;
use super::calls::Executed;
use super::token::Token;
use super::{Chat, ChatError};

/// What came of a turn.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// Every call that was run, answer by answer, as they ended.
    pub executed: Vec<Executed>,
    /// How many answers had their calls run.
    pub rounds: usize,
    /// Calls of the last answer that were not run, because there had been too many rounds.
    pub withheld: usize,
}

/// Why a turn ended early.
#[derive(Debug, thiserror::Error)]
pub enum RoundsError<E: Error + 'static> {
    /// The application could not ask its model.
    #[error("the model could not be asked")]
    Model(#[source] E),
    /// The answer could not be read.
    #[error(transparent)]
    Chat(#[from] ChatError),
}

impl Chat {
    /// Asks the model until it calls nothing more, [`Settings::max_tool_rounds`] times after the first
    /// answer at most. `ask` gets nothing at first, then the results of the calls as a message to add
    /// to the history. `show` gets every piece of every answer in order.
    ///
    /// Dropping the future ends the answer and cancels its calls.
    ///
    /// # Errors
    ///
    /// What `ask` fails with.
    ///
    /// [`Settings::max_tool_rounds`]: super::Settings::max_tool_rounds
    pub async fn run_rounds<A, F, S, E>(
        &self,
        mut ask: A,
        mut show: impl FnMut(Token),
    ) -> Result<Rounds, RoundsError<E>>
    where
        A: FnMut(Option<String>) -> F,
        F: Future<Output = Result<S, E>>,
        S: Stream<Item = String> + Send + Unpin + 'static,
        E: Error + 'static,
    {
        let turn = self.turn();
        let mut all = Rounds { executed: Vec::new(), rounds: 0, withheld: 0 };
        let mut message = None;
        loop {
            let stream = ask(message).await.map_err(RoundsError::Model)?;
            let mut answer = turn.answer(stream)?;
            while let Some(part) = answer.next_part().await {
                match part {
                    Part::Token(token) => show(token),
                    Part::Executed(executed) => all.executed.push(executed),
                }
            }
            all.withheld = answer.results.withheld();
            message = answer.results_as_message().await;
            if message.is_none() {
                return Ok(all);
            }
            all.rounds += 1;
        }
    }
}
