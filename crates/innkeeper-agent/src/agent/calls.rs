//! The calls of one answer: asked about one by one, run side by side, told in the order they end.

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;

use super::{Event, Sink, Step};
use crate::safety::{Approval, Approver, Decision, Policy, executed};
use crate::tools::{Hints, Offered, Output, RunError, ToolRunner, perform};
use crate::turn::{Effect, Planned, Turn};
use crate::words;

/// How many calls of an answer run at once: a server has other clients.
const PARALLEL: usize = 8;

/// Who runs calls, and who decides about them.
pub(super) struct Crew<'a> {
    pub(super) runner: &'a dyn ToolRunner,
    pub(super) approver: Option<&'a dyn Approver>,
    pub(super) policy: Policy,
    pub(super) offered: &'a [Offered],
}

/// What came of a call.
enum Came {
    Answered(Output),
    Failed(RunError),
    Refused(String),
}

impl Crew<'_> {
    /// Runs all of them; what the turn wants next when the last one has ended.
    pub(super) async fn run(
        &self,
        planned: Vec<Planned>,
        turn: &mut Turn<'_>,
        steps: &mut Vec<Step>,
        sink: &mut Sink<'_>,
    ) -> Effect {
        let mut approved = Vec::new();
        let mut effect = Effect::Wait;
        for call in planned {
            match self.decide(&call).await {
                Decision::Run => approved.push(call),
                Decision::Refuse(why) => {
                    let ended = (call, Came::Refused(why), std::time::Duration::ZERO);
                    effect = end(ended, turn, steps, sink);
                }
            }
        }
        let mut waiting = approved.into_iter();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < PARALLEL
                && let Some(call) = waiting.next()
            {
                let arguments = call.call.arguments.to_string();
                sink(Event::Running { tool: &call.call.name, arguments: &arguments });
                running.push(self.perform(call));
            }
            let Some(ended) = running.next().await else { return effect };
            effect = end(ended, turn, steps, sink);
        }
    }

    async fn perform(&self, planned: Planned) -> (Planned, Came, std::time::Duration) {
        let begun = Instant::now();
        let came = match perform(self.runner, &planned.call).await {
            Ok(output) => Came::Answered(output),
            Err(error) => Came::Failed(error),
        };
        (planned, came, begun.elapsed())
    }

    async fn decide(&self, planned: &Planned) -> Decision {
        let tool = &planned.call.name;
        let found = self.offered.iter().find(|offered| offered.tool.name == *tool);
        let hints: Hints = found.map(|offered| offered.hints).unwrap_or_default();
        match (self.policy.asks(hints), self.approver) {
            (Some(false), _) => Decision::Run,
            (Some(true), Some(approver)) => {
                let arguments = planned.call.arguments.to_string();
                approver.decide(Approval { tool, arguments: &arguments, hints }).await
            }
            (Some(true), None) => Decision::Refuse("nobody is there to approve it".to_owned()),
            (None, _) => Decision::Refuse("no tool may be run here".to_owned()),
        }
    }
}

/// A call came to its end: everyone is told.
fn end(
    (planned, came, elapsed): (Planned, Came, std::time::Duration),
    turn: &mut Turn<'_>,
    steps: &mut Vec<Step>,
    sink: &mut Sink<'_>,
) -> Effect {
    let Planned { id, call, mechanism, retries, reasoning } = planned;
    let (outcome, success, told, output) = match came {
        Came::Answered(output) => {
            let success = !output.is_error();
            let outcome = if success { "done" } else { "tool_error" };
            (outcome, success, words::of(&output), Some(output))
        }
        Came::Failed(error) => ("failed", false, error.to_string(), None),
        Came::Refused(why) => ("refused", false, format!("not run: {why}"), None),
    };
    let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    executed(&call.name, &call.arguments.to_string(), outcome, milliseconds);
    let step = Step {
        iteration: turn.tally().iterations,
        id,
        tool: call.name,
        arguments: call.arguments,
        output,
        success,
        told,
        elapsed,
        mechanism,
        retries,
        reasoning,
    };
    sink(Event::Ran(&step));
    let effect = turn.ran(&step.id, step.told.clone(), !success);
    steps.push(step);
    effect
}
