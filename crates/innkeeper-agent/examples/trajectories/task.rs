//! The tasks of a benchmark with the results of the benchmark's own code, and their alterations.

use innkeeper_testkit::llm::ScriptedReply;
use serde::Deserialize;
use serde_json::Value;

/// The name of the server.
pub(crate) const SERVER: &str = "bench";

/// A task: several turns, each with its golden calls.
#[derive(Clone, Deserialize)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) turns: Vec<Vec<GoldenCall>>,
    /// The final state.
    pub(crate) state: String,
}

/// A golden call with its result.
#[derive(Clone, Deserialize)]
pub(crate) struct GoldenCall {
    #[serde(flatten)]
    call: Call,
    /// The same call without the tool of the benchmark that calls discovered tools.
    discovered: Option<Call>,
    pub(crate) text: String,
    pub(crate) is_error: bool,
    /// Whether the call is known to be the last call of its task that changes the state.
    #[serde(default)]
    is_last_change: bool,
    /// The arguments that the model writes in place of the golden arguments.
    #[serde(skip)]
    altered_arguments: Option<Value>,
}

#[derive(Clone, PartialEq, Deserialize)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
}

/// How the model makes the golden calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayMode {
    /// One call per response.
    OneCall,
    /// All calls of a turn in one response.
    WholeTurn,
    /// One call per response; a discovered tool is called as a tool of its own.
    Discovered,
}

impl GoldenCall {
    /// Returns the call that the server must get.
    pub(crate) fn call(&self, mode: ReplayMode) -> &Call {
        match (mode, &self.discovered) {
            (ReplayMode::Discovered, Some(discovered)) => discovered,
            (ReplayMode::OneCall | ReplayMode::WholeTurn | ReplayMode::Discovered, _) => &self.call,
        }
    }

    pub(crate) fn has_discovered_tool(&self) -> bool {
        self.discovered.is_some()
    }

    fn write(&self, reply: ScriptedReply, mode: ReplayMode) -> ScriptedReply {
        let call = self.call(mode);
        let arguments = self.altered_arguments.as_ref().unwrap_or(&call.arguments);
        reply.with_tool_call(public_name(&call.tool), arguments.clone())
    }
}

pub(crate) fn public_name(tool: &str) -> String {
    format!("{SERVER}.{tool}")
}

impl Task {
    pub(crate) fn calls(&self) -> impl Iterator<Item = &GoldenCall> {
        self.turns.iter().flatten()
    }

    /// Returns the modes in which the calls differ.
    pub(crate) fn modes(&self) -> Vec<ReplayMode> {
        let mut modes = vec![ReplayMode::OneCall, ReplayMode::WholeTurn];
        if self.calls().any(GoldenCall::has_discovered_tool) {
            modes.push(ReplayMode::Discovered);
        }
        modes
    }

    /// Returns the responses of the model.
    pub(crate) fn replies(&self, mode: ReplayMode) -> Vec<ScriptedReply> {
        self.turns.iter().flat_map(|turn| turn_replies(turn, mode)).collect()
    }
}

fn turn_replies(turn: &[GoldenCall], mode: ReplayMode) -> Vec<ScriptedReply> {
    let write = |reply: ScriptedReply, call: &GoldenCall| call.write(reply, mode);
    let mut replies: Vec<_> = match mode {
        ReplayMode::OneCall | ReplayMode::Discovered => {
            turn.iter().map(|call| write(ScriptedReply::new(), call)).collect()
        }
        ReplayMode::WholeTurn if turn.is_empty() => Vec::new(),
        ReplayMode::WholeTurn => vec![turn.iter().fold(ScriptedReply::new(), write)],
    };
    replies.push(ScriptedReply::text("Done."));
    replies
}

/// A difference between a replay and the benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// The final state.
    State,
    /// The calls that the server got.
    ReceivedCalls,
    /// The result of a call.
    Result(String),
    /// The end of a turn, the number of its calls, or the responses that the model wrote.
    Course(String),
}

/// A change of a task after which the comparison must find a difference.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Alteration {
    /// The last call that changes the state and the calls after that call are neither made nor
    /// expected.
    OmittedCalls,
    /// The model writes other arguments.
    Arguments,
    /// Another result of a call is expected.
    Result,
}

impl Alteration {
    pub(crate) const ALL: [Self; 3] = [Self::OmittedCalls, Self::Arguments, Self::Result];

    /// Returns the task with the alteration at the last call that changes the state; `None` if no call
    /// is known to be that call.
    pub(crate) fn apply_to(self, task: &Task) -> Option<Task> {
        let mut task = task.clone();
        let has_change = |turn: &Vec<GoldenCall>| turn.iter().any(|call| call.is_last_change);
        let turn_at = task.turns.iter().position(has_change)?;
        let turn = task.turns.get_mut(turn_at)?;
        let at = turn.iter().position(|call| call.is_last_change)?;
        match self {
            Self::OmittedCalls => {
                turn.truncate(at);
                task.turns.truncate(turn_at + 1);
            }
            Self::Arguments => {
                let call = turn.get_mut(at)?;
                call.altered_arguments = Some(altered(&call.call.arguments)?);
            }
            Self::Result => turn.get_mut(at)?.text.push('.'),
        }
        Some(task)
    }

    /// Returns whether the difference is a consequence of the alteration.
    pub(crate) fn is_cause_of(self, difference: &Difference) -> bool {
        match self {
            Self::OmittedCalls => *difference == Difference::State,
            Self::Arguments => !matches!(difference, Difference::Course(_)),
            Self::Result => matches!(difference, Difference::Result(_)),
        }
    }
}

/// Returns the arguments with one other text; `None` without a text.
fn altered(arguments: &Value) -> Option<Value> {
    let mut arguments = arguments.clone();
    let text = arguments.as_object_mut()?.values_mut().find(|value| value.is_string())?;
    *text = Value::from(format!("{}x", text.as_str()?));
    Some(arguments)
}
