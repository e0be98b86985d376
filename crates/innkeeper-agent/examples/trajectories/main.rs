//! Replays the golden actions of a benchmark through a host and an agent.
//!
//! `trajectories PYTHON SCRIPT FAMILY FILE` reads the tasks of `FILE`, as the script writes them. For
//! each task and each mode, a host starts the script as the server of the task, and a scripted model
//! makes the golden calls over HTTP. Each result, the calls that the server got, and the final state
//! must equal those of the benchmark's own code. Then one task is altered: the comparison must find
//! each alteration. Prints one JSON object.

mod replay;
mod task;

use std::error::Error;
use std::fs;
use std::path::Path;

use futures_util::{StreamExt as _, stream};
use serde_json::json;

use crate::replay::{Program, replay};
use crate::task::{Alteration, Difference, GoldenCall, ReplayMode, Task};

/// Number of tasks that run beside each other.
const PARALLEL_TASKS: usize = 2;

/// A task, the mode of its replay, and the alteration that the comparison must find.
struct Attempt {
    task: Task,
    mode: ReplayMode,
    alteration: Option<Alteration>,
}

impl Attempt {
    /// Replays the task. Returns what is wrong.
    async fn problem(&self, program: &Program, file: &Path) -> Option<String> {
        let found = match (replay(program, &self.task, self.mode, file).await, self.alteration) {
            (Err(error), _) => error.to_string(),
            (Ok(None), None) => return None,
            (Ok(Some(found)), Some(alteration)) if alteration.is_cause_of(&found) => return None,
            (Ok(found), _) => found.map_or("no difference".to_owned(), |found| describe(&found)),
        };
        let altered = self.alteration.map(|alteration| format!(", {alteration:?} altered"));
        let altered = altered.unwrap_or_default();
        Some(format!("{} ({:?}{altered}): {found}", self.task.id, self.mode))
    }
}

fn describe(difference: &Difference) -> String {
    match difference {
        Difference::State => "the final state differs".to_owned(),
        Difference::ReceivedCalls => "the server got other calls".to_owned(),
        Difference::Result(text) | Difference::Course(text) => text.clone(),
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "prints the figures and differences")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("expected PYTHON SCRIPT FAMILY FILE");
    let program = Program { python: next()?, script: next()?, family: next()? };
    let tasks: Vec<Task> = serde_json::from_str(&fs::read_to_string(next()?)?)?;
    let golden =
        tasks.iter().flat_map(|task| task.modes().into_iter().map(move |mode| (task, mode)));
    let golden = golden.map(|(task, mode)| Attempt { task: task.clone(), mode, alteration: None });
    let altered = Alteration::ALL.into_iter().filter_map(|alteration| {
        let task = tasks.iter().find_map(|task| alteration.apply_to(task))?;
        Some(Attempt { task, mode: ReplayMode::OneCall, alteration: Some(alteration) })
    });
    let attempts: Vec<_> = golden.chain(altered).collect();
    let count = |is_altered: bool| {
        attempts.iter().filter(|attempt| attempt.alteration.is_some() == is_altered).count()
    };
    let (runs, alterations) = (count(false), count(true));
    if runs == 0 || alterations != Alteration::ALL.len() {
        return Err("the benchmark has no task, or no call that changes the state".into());
    }
    let dir = tempfile::tempdir()?;
    let (program, dir) = (&program, dir.path());
    let mut results = stream::iter(attempts.iter().enumerate())
        .map(|(at, attempt)| async move {
            let problem = attempt.problem(program, &dir.join(at.to_string())).await;
            (attempt.alteration.is_some(), problem)
        })
        .buffer_unordered(PARALLEL_TASKS);
    let (mut equal, mut noticed) = (0, 0);
    while let Some((is_altered, problem)) = results.next().await {
        match (is_altered, problem) {
            (false, None) => equal += 1,
            (true, None) => noticed += 1,
            (_, Some(problem)) => eprintln!("{problem}"),
        }
    }
    let calls = || tasks.iter().flat_map(Task::calls);
    let discovered = calls().filter(|call| call.has_discovered_tool()).count();
    let errors = calls().filter(|call: &&GoldenCall| call.is_error).count();
    println!(
        "{}",
        json!({"family": program.family, "tasks": tasks.len(), "calls": calls().count(),
            "errors": errors, "discovered": discovered, "runs": runs, "equal": equal,
            "alterations": alterations, "noticed": noticed})
    );
    let wrong = runs - equal + alterations - noticed;
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} runs are not as expected").into()) }
}
