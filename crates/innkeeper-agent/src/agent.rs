//! An agent: a model, tools that it may call, and the conversation with it.
//!
//! [`Agent::run`] takes one message of a person to the model's last answer: it asks the model, has
//! the calls run that it makes, tells it the results, and asks again. The rules of that are
//! [`turn`](crate::turn)'s; here is what brings them about.

mod calls;
mod event;
mod happened;
mod report;
mod settings;
mod showing;
mod statistics;

use std::sync::Arc;

use futures_util::StreamExt as _;
use innkeeper_toolcall::prompt::Template;
use innkeeper_toolcall::{Toolbox, Tools};
use tokio::time::{Instant, sleep, timeout};

use crate::conversation::Conversation;
use crate::provider::{Class, LlmError, LlmProvider, Piece, Request, Response};
use crate::safety::{Approver, RateLimit};
use crate::tools::{Offered, ToolRunner};
use crate::turn::{Effect, Ended, Setup, Turn};
use calls::Crew;
use showing::Showing;

pub use event::Event;
pub use happened::{Happened, Happenings};
pub use report::{Report, Step};
pub use settings::Settings;
pub use statistics::{MECHANISMS, Statistics};

/// See the [module](self).
pub struct Agent {
    provider: Arc<dyn LlmProvider>,
    runner: Arc<dyn ToolRunner>,
    approver: Option<Arc<dyn Approver>>,
    settings: Settings,
    rate: Option<RateLimit>,
    conversation: Conversation,
    /// The tools as they were last offered: their schemas are compiled once.
    known: Known,
    statistics: Statistics,
}

/// The tools of one moment.
#[derive(Debug, Default)]
struct Known {
    offered: Vec<Offered>,
    tools: Arc<Tools>,
    toolbox: Arc<Toolbox>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("provider", &self.provider.name())
            .field("model", &self.provider.model())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Where events go.
type Sink<'s> = dyn FnMut(Event<'_>) + Send + 's;

impl Agent {
    /// An agent over this model and these tools; nothing was said yet.
    pub fn new(
        provider: Arc<dyn LlmProvider>,
        runner: Arc<dyn ToolRunner>,
        settings: Settings,
    ) -> Self {
        let rate = settings.rate_limit_per_minute.map(RateLimit::per_minute);
        Self {
            provider,
            runner,
            approver: None,
            settings,
            rate,
            conversation: Conversation::new(),
            known: Known::default(),
            statistics: Statistics::default(),
        }
    }

    /// The same, with someone who decides about the calls that need a yes. Without, those calls are
    /// refused.
    #[must_use]
    pub fn with_approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// What was said so far.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// The model, by its provider's name for it.
    pub fn model(&self) -> &str {
        self.provider.model()
    }

    /// How well the model called tools so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Forgets what was said.
    pub fn clear(&mut self) {
        self.conversation = Conversation::new();
    }

    /// Takes a message to the model's last answer.
    ///
    /// Ends in bounded time: each answer and each call has its own limit, and there are only so many.
    /// Dropping the future cancels what is under way; the conversation then says of each call that
    /// was interrupted that it was.
    pub async fn run(&mut self, message: &str) -> Report {
        self.drive(message, false, &mut |_| {}).await
    }

    /// The same with the model's text while it is written; `sink` is told what happens as it does.
    pub async fn run_streaming(
        &mut self,
        message: &str,
        mut sink: impl FnMut(Event<'_>) + Send,
    ) -> Report {
        self.drive(message, true, &mut sink).await
    }

    async fn drive(&mut self, message: &str, streaming: bool, sink: &mut Sink<'_>) -> Report {
        let begun = Instant::now();
        self.look();
        let setup = Arc::new(self.setup());
        let asker = Asker {
            provider: &*self.provider,
            settings: &self.settings,
            rate: self.rate.as_ref(),
            tools: &self.known.tools,
            streaming,
        };
        let crew = Crew {
            runner: &*self.runner,
            approver: self.approver.as_deref(),
            policy: self.settings.approve,
            offered: &self.known.offered,
        };
        let mut steps = Vec::new();
        let (mut turn, mut effect) = match Turn::begin(setup, &mut self.conversation, message) {
            Ok(begun) => begun,
            Err(error) => {
                let reason = error.to_string();
                return Report::unasked(reason, begun.elapsed());
            }
        };
        let ended = loop {
            effect = match effect {
                Effect::Ask(request) => match asker.ask(*request, sink).await {
                    Ok(response) => turn.answered(&response, fastrand::f64()),
                    Err(error) => turn.failed(error, fastrand::f64()),
                },
                Effect::Pause(pause) => {
                    sink(Event::Again { after: pause });
                    sleep(pause).await;
                    turn.resume()
                }
                Effect::Run(planned) => crew.run(planned, &mut turn, &mut steps, sink).await,
                // Each effect that leads here is answered by `crew` until no call runs.
                Effect::Wait => break Ended::Unasked { reason: "a call was lost".to_owned() },
                Effect::End(ended) => break ended,
            };
        };
        let report = Report::new(ended, &turn, steps, begun.elapsed());
        drop(turn);
        self.statistics.count(&report);
        report
    }

    /// Takes up the tools that are offered now.
    fn look(&mut self) {
        let offered: Vec<_> = self
            .runner
            .offered()
            .into_iter()
            .filter(|it| !self.settings.blocked.block(&it.tool.name))
            .collect();
        if self.known.offered != offered {
            let tools: Tools = offered.iter().map(|it| it.tool.clone()).collect();
            let toolbox = Arc::new(Toolbox::new(tools.clone()));
            self.known = Known { offered, tools: Arc::new(tools), toolbox };
        }
    }

    fn setup(&self) -> Setup {
        let settings = &self.settings;
        let template = settings.template.clone();
        let capabilities = self.provider.capabilities();
        let (budget, context_tokens) = settings.window(capabilities.context_tokens);
        Setup {
            system: settings.system.clone(),
            tools: self.known.tools.clone(),
            toolbox: self.known.toolbox.clone(),
            template: template.unwrap_or_else(|| Template::of(self.provider.model())),
            format: settings.format,
            calling: settings.calling,
            budget,
            context_tokens,
            capabilities,
            max_tokens: settings.max_tokens,
            keep_prompt: settings.keep_prompt,
            temperature: settings.temperature,
            temperature_reduction: settings.temperature_reduction,
            max_retries: settings.max_retries,
            retry_delay: settings.retry_delay,
            limits: settings.limits.clone(),
            blocked: settings.blocked.clone(),
        }
    }
}

/// Asks the model.
struct Asker<'a> {
    provider: &'a dyn LlmProvider,
    settings: &'a Settings,
    rate: Option<&'a RateLimit>,
    tools: &'a Arc<Tools>,
    streaming: bool,
}

impl Asker<'_> {
    async fn ask(&self, request: Request, sink: &mut Sink<'_>) -> Result<Response, LlmError> {
        self.turn_of_minute().await?;
        let limit = self.settings.answer_timeout;
        let answer = async {
            if self.streaming {
                self.listen(request, sink).await
            } else {
                self.provider.generate(request).await
            }
        };
        let late = || {
            let message = format!("no whole answer within {} s", limit.as_secs());
            let model = self.provider.model().into();
            LlmError { model, ..LlmError::new(self.provider.name(), Class::TimedOut, message) }
        };
        timeout(limit, answer).await.unwrap_or_else(|_| Err(late()))
    }

    /// Waits for a request to be allowed, or says that it is not.
    async fn turn_of_minute(&self) -> Result<(), LlmError> {
        let Some(rate) = self.rate else { return Ok(()) };
        while let Err(after) = rate.begin() {
            if !self.settings.wait_for_rate_limit || !rate.lets_any_through() {
                let message = format!(
                    "the limit of {} requests a minute is reached; the next one in {:.1} s",
                    self.settings.rate_limit_per_minute.unwrap_or_default(),
                    after.as_secs_f64()
                );
                let class = Class::RateLimited { after };
                return Err(LlmError::new(self.provider.name(), class, message));
            }
            sleep(after).await;
        }
        Ok(())
    }

    async fn listen(&self, request: Request, sink: &mut Sink<'_>) -> Result<Response, LlmError> {
        let mut showing = Showing::new(self.tools, self.settings.format);
        let mut pieces = self.provider.stream(request);
        while let Some(piece) = pieces.next().await {
            match piece? {
                Piece::Done(response) => {
                    showing.end(sink);
                    return Ok(*response);
                }
                piece @ (Piece::Text(_)
                | Piece::Reasoning(_)
                | Piece::CallStart { .. }
                | Piece::Arguments { .. }) => showing.piece(&piece, sink),
            }
        }
        let message = "the answer breaks off before its end";
        Err(LlmError::new(self.provider.name(), Class::Connection, message))
    }
}

#[cfg(test)]
mod tests;
