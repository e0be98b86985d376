//! What the agent has had of its servers.

use innkeeper_agent::golden::{Golden, Script};
use innkeeper_protocol::method;

/// The methods of requests that an agent makes on purpose.
const COUNTED_METHODS: [&str; 3] =
    [method::RESOURCES_READ, method::PROMPTS_GET, method::COMPLETION_COMPLETE];

/// What the agent has had of its servers.
#[derive(Debug)]
pub(in crate::agent_run) struct ServersState {
    pub(in crate::agent_run) script: Script,
    pub(super) served: Vec<ServedState>,
}

/// What the agent has had of one command line.
#[derive(Clone, Debug)]
pub(super) struct ServedState {
    pub(super) is_connected: bool,
    pub(super) used_answers: Vec<bool>,
    pub(super) answers: usize,
    pub(super) sent_notifications: Vec<bool>,
}

impl ServersState {
    pub(in crate::agent_run) fn new(golden: &Golden) -> Self {
        let served = golden.served.iter().map(|served| ServedState {
            is_connected: false,
            used_answers: vec![false; served.answers.len()],
            answers: 0,
            sent_notifications: vec![false; served.notifications.len()],
        });
        Self { script: Script::new(golden), served: served.collect() }
    }

    /// Returns the recorded answers that nothing asked for. An agent may list its tools as often as it
    /// likes.
    pub(in crate::agent_run) fn unused(&self, golden: &Golden) -> Vec<String> {
        let mut unused = self.script.unused();
        for (served, state) in golden.served.iter().zip(&self.served) {
            let command = || format!("`innkeeper {}`", served.arguments.join(" "));
            if !state.is_connected {
                unused.push(command());
                continue;
            }
            let answers = served.answers.iter().zip(&state.used_answers);
            let skipped = answers.filter(|(answer, is_used)| {
                !**is_used && COUNTED_METHODS.contains(&&*answer.method)
            });
            unused
                .extend(skipped.map(|(answer, _)| format!("`{}` of {}", answer.method, command())));
        }
        unused
    }

    /// Returns the recorded command line that a client has started: the same one, else one that
    /// differs in its paths only, else the next one that no client has started.
    pub(super) fn connect(&mut self, golden: &Golden, arguments: &[String]) -> Option<usize> {
        let sent = file_names(arguments);
        let mut order: Vec<usize> = (0..golden.served.len()).collect();
        order.sort_by_key(|at| self.served[*at].is_connected);
        let found = order
            .iter()
            .find(|at| golden.served[**at].arguments == arguments)
            .or_else(|| order.iter().find(|at| file_names(&golden.served[**at].arguments) == sent));
        let next = order.first().filter(|at| !self.served[**at].is_connected || order.len() == 1);
        let served = *found.or(next)?;
        self.served[served].is_connected = true;
        Some(served)
    }
}

/// Returns arguments without the directories of their paths.
fn file_names(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(|text| text.rsplit('/').next().unwrap_or_default()).collect()
}
