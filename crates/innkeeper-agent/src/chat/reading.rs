//! The task behind an answer: reads the text, hands it on, has its calls run.

use std::future::poll_fn;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};
use innkeeper_toolcall::{Call, Finish, Interceptor, Options, State};
use serde_json::json;

use super::calls::{CALLS, Calls, Kitchen};
use super::queue::{Ended, Ending, Queue};
use super::record::{Begun, Kind, Recorder};
use super::token::{Found, Sorter, Token};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Reader {
    /// `None` where text goes through as it is.
    interceptor: Option<Interceptor>,
    sorter: Sorter,
    calls: Calls,
    /// Whether calls are run.
    runs: bool,
    recorder: Recorder,
    /// How many bytes came in, and how many went out as tokens.
    came: usize,
    went: usize,
    found: Vec<Found>,
}

impl Reader {
    pub(super) fn new(
        kitchen: Kitchen,
        options: Option<Options>,
        placeholder: Option<String>,
        runs: bool,
    ) -> Self {
        let tools = kitchen.known.tools.clone();
        let recorder = kitchen.recorder.clone();
        Self {
            interceptor: options.map(|options| Interceptor::new(tools, &options)),
            sorter: Sorter::new(placeholder),
            calls: Calls::new(kitchen),
            runs,
            recorder,
            came: 0,
            went: 0,
            found: Vec::new(),
        }
    }

    /// Reads the stream to its end and waits for every call.
    pub(super) async fn read<S>(mut self, mut stream: S, queue: Arc<Queue>)
    where
        S: Stream<Item = String> + Send + Unpin + 'static,
    {
        let _ending = Ending(queue.clone());
        let begun = self.recorder.begin(Kind::ContinuationRequest);
        let mut reading = true;
        loop {
            while let Some(refused) = self.calls.begin(queue.untaken_results()) {
                queue.put_executed(refused);
            }
            if !reading && self.calls.is_empty() {
                break;
            }
            // A stream that always has more must not keep the thread for itself.
            tokio::task::consume_budget().await;
            tokio::select! {
                Some(executed) = self.calls.next() => queue.put_executed(executed),
                piece = next_piece(&mut stream, &queue), if reading => match piece {
                    Ok(Some(piece)) => self.take(&piece, &queue),
                    Ok(None) => {
                        reading = false;
                        self.finish(Ended::Whole, &queue, begun);
                    }
                    Err(ended) => {
                        reading = false;
                        self.finish(ended, &queue, begun);
                    }
                },
            }
        }
        // Whoever sees the end of the results finds them in the log as well.
        self.recorder.flush().await;
        queue.end_tools();
    }

    /// Takes one piece of text.
    fn take(&mut self, piece: &str, queue: &Queue) {
        if piece.is_empty() {
            return;
        }
        let Some(interceptor) = &mut self.interceptor else {
            return self.put(Token::Narrative(piece.to_owned()), queue);
        };
        self.came += piece.len();
        let (sorter, found) = (&mut self.sorter, &mut self.found);
        interceptor.push(piece, &mut |event| sorter.take(&event, found));
        self.hand_on(queue);
        let undecided = (self.came - self.went).saturating_sub(self.sorter.held());
        if undecided > 0 {
            let new = piece.len() - undecided.min(piece.len());
            // What is undecided is the end of the text, and events part it between letters.
            let new = piece.get(new..).unwrap_or(piece);
            self.put(Token::Buffered(new.to_owned()), queue);
        }
    }

    /// Nothing more is read.
    fn finish(&mut self, ended: Ended, queue: &Queue, begun: Begun) {
        if let Some(interceptor) = &mut self.interceptor {
            let (sorter, found) = (&mut self.sorter, &mut self.found);
            interceptor.finish(Finish::Interrupted, &mut |event| sorter.take(&event, found));
            sorter.release(false, found);
            self.hand_on(queue);
        }
        let came = self.came;
        let state = self.interceptor.as_ref().map(Interceptor::state);
        self.recorder.complete(
            Kind::ContinuationResponse,
            begun,
            || json!({"bytes": came, "ended": word(ended), "state": state.map(name)}),
        );
        self.recorder.metric("answer", begun);
        queue.end_text(ended);
    }

    fn hand_on(&mut self, queue: &Queue) {
        for found in std::mem::take(&mut self.found) {
            match found {
                Found::Token(token) => self.put(token, queue),
                Found::Began { index, tool } => {
                    let details = || json!({"tool": tool, "call": index});
                    self.recorder.tell(Kind::ToolDetectionStart, details);
                }
                Found::Call { index, call } => self.call(index, call, queue),
            }
        }
    }

    fn call(&mut self, index: usize, call: Call, queue: &Queue) {
        let repairs = call.repairs.len();
        self.recorder.tell(
            Kind::ToolDetectionComplete,
            || json!({"tool": call.name, "call": index, "repairs": repairs}),
        );
        if !self.runs {
            queue.withhold();
        } else if !self.calls.has_room() {
            let why = format!("only {CALLS} calls of an answer are run");
            self.put(Token::NoCall { text: String::new(), why }, queue);
        } else if let Some(refused) = self.calls.take(index, call) {
            queue.put_executed(refused);
        }
    }

    fn put(&mut self, token: Token, queue: &Queue) {
        self.went += token.text().len();
        self.recorder.classified(token.class(), token.content());
        queue.put_token(token);
    }
}

/// The next piece when there is room for it. Cancel-safe, as taking from a stream is.
async fn next_piece<S>(stream: &mut S, queue: &Queue) -> Result<Option<String>, Ended>
where
    S: Stream<Item = String> + Unpin,
{
    poll_fn(|context| queue.poll_room(context)).await?;
    Ok(stream.next().await)
}

fn word(ended: Ended) -> &'static str {
    match ended {
        Ended::Whole => "whole",
        Ended::Overrun => "overrun",
        Ended::Broken => "broken",
    }
}

fn name(state: State) -> &'static str {
    match state {
        State::Narrative => "Narrative",
        State::MaybeToolStart => "MaybeToolStart",
        State::InToolCall => "InToolCall",
        State::AfterToolCall => "AfterToolCall",
        State::Reasoning => "Reasoning",
    }
}
