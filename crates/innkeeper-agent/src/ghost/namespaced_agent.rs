//! An agent that sees its tools under the names of a namespace.

use std::sync::Arc;

use super::{Namespace, RunSeams};
use crate::agent::{Agent, AgentSettings};
use crate::provider::LlmProvider;
use crate::safety::Approver;
use crate::timing::Timing;
use crate::tools::ToolRunner;

/// What the agent of a one-shot run is made of. The tools and the approver have public names.
pub struct AgentParts<'p> {
    /// The model.
    pub provider: Arc<dyn LlmProvider>,
    /// The tools.
    pub tools: Arc<dyn ToolRunner>,
    /// The namespace; see [`GhostConfig::namespace`](super::GhostConfig::namespace).
    pub namespace: &'p str,
    /// The settings.
    pub settings: AgentSettings,
    /// Decides about calls that need approval.
    pub approver: Option<Arc<dyn Approver>>,
}

/// An agent with the namespace of its tools, which restores their names in the result.
#[derive(Debug)]
pub struct NamespacedAgent {
    /// The agent.
    pub agent: Agent,
    /// The namespace.
    pub namespace: Arc<Namespace>,
}

impl std::fmt::Debug for AgentParts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentParts").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl AgentParts<'_> {
    /// Creates the agent.
    pub fn into_agent(self) -> NamespacedAgent {
        self.into_agent_between(None)
    }

    /// Creates the agent, with a recorder between it and the outside. The provider passes the recorder
    /// already.
    pub(crate) fn into_agent_between(self, seams: Option<&dyn RunSeams>) -> NamespacedAgent {
        let Self { provider, mut tools, namespace, settings, mut approver } = self;
        let mut timing = Timing::default();
        if let Some(seams) = seams {
            tools = seams.tools(tools);
            approver = approver.map(|approver| seams.approver(approver));
            timing = seams.timing();
        }
        let namespace = Arc::new(Namespace::new(namespace, tools, settings.blocklist.clone()));
        let mut agent = Agent::with_timing(provider, namespace.clone(), settings, timing);
        if let Some(approver) = approver {
            agent = agent.with_approver(namespace.approver(approver));
        }
        NamespacedAgent { agent, namespace }
    }
}
