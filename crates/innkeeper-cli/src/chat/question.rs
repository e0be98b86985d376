//! Questions to the person in front of the chat: approvals of calls, and requests of servers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use innkeeper_agent::ToolAnnotations;
use innkeeper_agent::conversation::Message;
use innkeeper_agent::safety::{
    ApprovalDecision, ApprovalRequest, ApprovalRule, ApprovalRules, Approver, DecisionScope,
    DefaultDecision, RuledTool,
};
use innkeeper_agent::server_requests::form::Form;
use innkeeper_agent::server_requests::{
    ElicitationMode, ElicitationRequest, ElicitationResponse, SamplingRequest, UserPrompter,
};
use innkeeper_host::config::ToolFilter;
use innkeeper_host::{CallReference, Catalog, CatalogTool, Host, Lock};
use innkeeper_protocol::skim;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::permanent_rules::{RuleStore, ToolIdentity};

/// Number of questions that wait: each server has at most two, and a response one.
const MAX_WAITING_QUESTIONS: usize = 64;

/// Reason of a denial, before the reason that the user gives.
const DENIED_BY_USER: &str = "the user denied the call";
/// Why a tool of this program has no rule for later conversations.
const NO_SERVER: &str = "the tool belongs to no server";

/// Reason of a denial by a rule.
const DENIED_BY_RULE: &str = "the user does not allow this tool in this conversation";

/// A question with the channel of its answer. A closed channel withdraws the question.
#[derive(Debug)]
pub(crate) enum Question {
    /// Whether a call runs.
    Approval(ApprovalQuestion, oneshot::Sender<ApprovalAnswer>),
    /// Whether the model answers a request of a server.
    Sampling(SamplingQuestion, oneshot::Sender<bool>),
    /// The values of a form, or the visit of a page.
    Elicitation(ElicitationQuestion, oneshot::Sender<ElicitationResponse>),
}

/// A call that needs a decision.
#[derive(Clone, Debug)]
pub(crate) struct ApprovalQuestion {
    pub(crate) tool: String,
    /// The server of the tool; `None` for a tool of this program.
    pub(crate) server: Option<String>,
    pub(crate) arguments: String,
    /// What the tool says of itself.
    pub(crate) description: Option<String>,
    pub(crate) annotations: ToolAnnotations,
    /// Whether `mcp.lock` pins the definition of the tool.
    pub(crate) is_pinned: bool,
    /// Why no rule for later conversations can be stored; `None` if a rule can be stored.
    pub(crate) permanent_obstacle: Option<&'static str>,
}

impl ApprovalQuestion {
    /// Returns what the tool says of its effect, and whether its definition is pinned.
    pub(crate) fn facts(&self) -> String {
        let hints = &self.annotations;
        let effect = match (hints.read_only, hints.destructive) {
            (true, _) => "says that it only reads",
            (false, true) => "may change or delete something",
            (false, false) => "says that it deletes nothing",
        };
        let reach = if hints.open_world { ", may reach other systems" } else { "" };
        let pin = if self.is_pinned { "pinned" } else { "not pinned" };
        format!("{effect}{reach}; {pin}")
    }
}

/// The decision about a call, and what else the decision applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalAnswer {
    Allow(DecisionScope),
    /// Runs all calls of the tool, in later conversations too, while its definition is the same.
    AllowAlways,
    /// Runs the call with other arguments, a JSON object.
    AllowWith(String),
    /// Does not run the call. The model gets the reason.
    Deny(DecisionScope, Option<String>),
}

impl ApprovalAnswer {
    /// Runs the call with other arguments.
    ///
    /// # Errors
    ///
    /// Returns why the text is no JSON object.
    pub(crate) fn with_arguments(text: String) -> Result<Self, String> {
        match serde_json::from_str::<Map<String, Value>>(&text) {
            Ok(_) => Ok(Self::AllowWith(text)),
            Err(error) => Err(format!("the arguments are no JSON object: {error}")),
        }
    }
}

/// A request of a server for a message of the model.
#[derive(Clone, Debug)]
pub(crate) struct SamplingQuestion {
    pub(crate) server: String,
    /// The tool whose call the request belongs to, if the protocol says so.
    pub(crate) call: Option<String>,
    pub(crate) model: String,
    /// The texts that the model gets, with their roles.
    pub(crate) messages: Vec<(&'static str, String)>,
    pub(crate) max_tokens: u32,
}

/// A request of a server for input of the user.
#[derive(Clone, Debug)]
pub(crate) struct ElicitationQuestion {
    pub(crate) server: String,
    /// The tool whose call the request belongs to, if the protocol says so.
    pub(crate) call: Option<String>,
    pub(crate) message: String,
    pub(crate) input: RequestedInput,
}

/// What a server asks for.
#[derive(Clone, Debug)]
pub(crate) enum RequestedInput {
    Form(Form),
    Url { url: String, host: String },
}

impl Question {
    /// Returns whether nobody waits for the answer any more.
    pub(crate) fn is_withdrawn(&self) -> bool {
        match self {
            Self::Approval(_, reply) => reply.is_closed(),
            Self::Sampling(_, reply) => reply.is_closed(),
            Self::Elicitation(_, reply) => reply.is_closed(),
        }
    }

    /// Waits until nobody waits for the answer any more.
    pub(crate) fn poll_withdrawn(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Approval(_, reply) => reply.poll_closed(context),
            Self::Sampling(_, reply) => reply.poll_closed(context),
            Self::Elicitation(_, reply) => reply.poll_closed(context),
        }
    }
}

/// Asks the person in front of the chat.
#[derive(Clone, Debug)]
pub(crate) struct Questioner(mpsc::Sender<Question>);

impl Questioner {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Question>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING_QUESTIONS);
        (Self(sender), receiver)
    }

    /// Asks a question; `None` if nobody answers.
    async fn request_answer<A>(
        &self,
        question: impl FnOnce(oneshot::Sender<A>) -> Question,
    ) -> Option<A> {
        let (reply, answer) = oneshot::channel();
        self.0.send(question(reply)).await.ok()?;
        answer.await.ok()
    }
}

/// Decides about calls by the rules of the person, and asks where no rule applies.
#[derive(Debug)]
pub(crate) struct ChatApprover {
    questioner: Questioner,
    host: Host,
    lock: Option<Lock>,
    /// The rules of the configuration, by servers.
    filters: Mutex<HashMap<String, ToolFilter>>,
    rules: Mutex<ApprovalRules>,
    permanent: RuleStore,
}

impl ChatApprover {
    pub(crate) fn new(
        questioner: Questioner,
        host: Host,
        lock: Option<Lock>,
        filters: HashMap<String, ToolFilter>,
        permanent: RuleStore,
    ) -> Self {
        let filters = Mutex::new(filters);
        Self { questioner, host, lock, filters, rules: Mutex::default(), permanent }
    }

    /// Replaces the rules of the configuration for these servers.
    pub(crate) fn update_filters(&self, filters: HashMap<String, ToolFilter>) {
        self.filters.lock().unwrap_or_else(PoisonError::into_inner).extend(filters);
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the rules for this and later conversations.
    pub(crate) fn permanent_rules(&self) -> &RuleStore {
        &self.permanent
    }

    pub(crate) fn remove_rule(&self, tool: &str) -> bool {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).remove_tool(tool)
    }

    pub(crate) fn rules(&self) -> ApprovalRules {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds the rule of a decision. `catalog` has the tools of the time of the question.
    fn add_rule(
        &self,
        call: &ApprovalRequest<'_>,
        catalog: &Catalog,
        scope: DecisionScope,
        rule: ApprovalRule,
    ) {
        let listed = catalog.tools().find(|listed| listed.public_name == call.tool);
        let server = listed.map(|listed| listed.server);
        let tool = RuledTool { name: call.tool, server, definition: call.definition };
        let of_server = catalog.tools().filter(|listed| Some(listed.server) == server);
        let of_server: Vec<_> = of_server.map(|listed| ruled_tool(&listed)).collect();
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.add(tool, scope, rule, &of_server);
    }

    /// Returns whether the lock has the present definition of a tool.
    fn is_pinned(&self, listed: &CatalogTool<'_>) -> bool {
        let Some(lock) = &self.lock else { return false };
        let current = self.host.pins();
        let name = &*listed.definition.view.name;
        let hash =
            |lock: &Lock| Some(lock.servers.get(listed.server)?.tools.get(name)?.hash.clone());
        hash(lock).is_some_and(|pinned| hash(&current) == Some(pinned))
    }

    /// Returns the decision of the permanent rules, the configuration and the annotations about a
    /// tool with the definition that the model or the person sees.
    fn default_decision(
        &self,
        listed: &CatalogTool<'_>,
        definition: &RawValue,
        annotations: ToolAnnotations,
        arguments: Option<&str>,
    ) -> DefaultDecision {
        if self.permanent.has_rule(listed)
            && self.permanent.allows(&ToolIdentity::new(&self.host, listed, definition))
        {
            return DefaultDecision::Allow;
        }
        let filters = self.filters.lock().unwrap_or_else(PoisonError::into_inner);
        let filter = filters.get(listed.server);
        let tool = &*listed.definition.view.name;
        let approves_arguments = filter
            .zip(arguments)
            .is_some_and(|(filter, arguments)| filter.approves_arguments(tool, arguments));
        match filter.and_then(|filter| filter.is_approved(tool)) {
            None if approves_arguments => DefaultDecision::Allow,
            Some(true) => DefaultDecision::Allow,
            Some(false) => DefaultDecision::AlwaysAsk,
            None => DefaultDecision::for_annotations(annotations),
        }
    }

    /// Returns the rule for the calls of a tool; `None` if each call asks.
    pub(crate) fn rule_for(&self, listed: &CatalogTool<'_>) -> Option<ApprovalRule> {
        let annotations = ToolAnnotations::from(&listed.definition.view.annotations);
        let default = self.default_decision(listed, &listed.definition.raw, annotations, None);
        self.rules().find(ruled_tool(listed), default)
    }

    /// Returns the rule for a call; `None` if the person must decide.
    fn find_rule(&self, call: &ApprovalRequest<'_>) -> Option<ApprovalRule> {
        let catalog = self.host.catalog();
        let listed = catalog.tools().find(|listed| listed.public_name == call.tool);
        let default = match (&listed, call.definition) {
            (Some(listed), Some(definition)) => {
                self.default_decision(listed, definition, call.annotations, Some(call.arguments))
            }
            (Some(_) | None, _) => DefaultDecision::for_annotations(call.annotations),
        };
        let server = listed.map(|listed| listed.server);
        let tool = RuledTool { name: call.tool, server, definition: call.definition };
        self.rules().find(tool, default)
    }

    /// Returns the question about a call, and the tool of a server.
    fn question(&self, call: &ApprovalRequest<'_>) -> (ApprovalQuestion, Option<ToolIdentity>) {
        let catalog = self.host.catalog();
        let listed = catalog.tools().find(|listed| listed.public_name == call.tool);
        let identity = listed.as_ref().zip(call.definition);
        let identity =
            identity.map(|(listed, definition)| ToolIdentity::new(&self.host, listed, definition));
        let permanent_obstacle = match &identity {
            Some(identity) => self.permanent.obstacle(identity),
            None => Some(NO_SERVER),
        };
        let question = ApprovalQuestion {
            tool: call.tool.to_owned(),
            server: listed.map(|listed| listed.server.to_owned()),
            arguments: call.arguments.to_owned(),
            description: call.definition.and_then(description),
            annotations: call.annotations,
            is_pinned: listed.as_ref().is_some_and(|listed| self.is_pinned(listed)),
            permanent_obstacle,
        };
        (question, identity)
    }

    /// Stores a rule for later conversations. The log says why a rule cannot be stored.
    fn add_permanent_rule(&self, identity: Option<&ToolIdentity>) {
        let Some(identity) = identity else { return };
        if let Err(error) = self.permanent.add(identity) {
            let reason = error.to_line();
            tracing::warn!(reason, "rule not stored: only this call runs without a question");
        }
    }
}

#[async_trait]
impl Approver for ChatApprover {
    async fn decide(&self, call: ApprovalRequest<'_>) -> ApprovalDecision {
        let deny = |reason: &str| ApprovalDecision::Deny(reason.to_owned());
        match self.find_rule(&call) {
            Some(ApprovalRule::Allow) => return ApprovalDecision::Approve,
            Some(ApprovalRule::Deny) => return deny(DENIED_BY_RULE),
            None => {}
        }
        let catalog = self.host.catalog();
        let (question, identity) = self.question(&call);
        match self.questioner.request_answer(|reply| Question::Approval(question, reply)).await {
            Some(ApprovalAnswer::Allow(scope)) => {
                self.add_rule(&call, &catalog, scope, ApprovalRule::Allow);
                ApprovalDecision::Approve
            }
            Some(ApprovalAnswer::AllowAlways) => {
                self.add_permanent_rule(identity.as_ref());
                ApprovalDecision::Approve
            }
            Some(ApprovalAnswer::AllowWith(arguments)) => ApprovalDecision::ApproveWith(arguments),
            Some(ApprovalAnswer::Deny(scope, reason)) => {
                self.add_rule(&call, &catalog, scope, ApprovalRule::Deny);
                match reason {
                    Some(reason) => deny(&format!("{DENIED_BY_USER}: {reason}")),
                    None => deny(DENIED_BY_USER),
                }
            }
            None => deny("nobody can approve the call"),
        }
    }
}

#[async_trait]
impl UserPrompter for Questioner {
    async fn approve_sampling(&self, request: SamplingRequest<'_>) -> ApprovalDecision {
        let question = SamplingQuestion {
            server: request.server.to_owned(),
            call: tool_of(request.call),
            model: request.model.to_owned(),
            messages: sampling_texts(&request),
            max_tokens: request.max_tokens,
        };
        match self.request_answer(|reply| Question::Sampling(question, reply)).await {
            Some(true) => ApprovalDecision::Approve,
            Some(false) => ApprovalDecision::Deny("the user denied the request".to_owned()),
            None => ApprovalDecision::Deny("nobody can approve the request".to_owned()),
        }
    }

    async fn answer_elicitation(&self, request: ElicitationRequest<'_>) -> ElicitationResponse {
        let input = match request.mode {
            ElicitationMode::Form(form) => RequestedInput::Form(form.clone()),
            ElicitationMode::Url { url, host } => {
                RequestedInput::Url { url: url.to_owned(), host: host.to_owned() }
            }
        };
        let question = ElicitationQuestion {
            server: request.server.to_owned(),
            call: tool_of(request.call),
            message: request.message.to_owned(),
            input,
        };
        let answer = self.request_answer(|reply| Question::Elicitation(question, reply)).await;
        answer.unwrap_or(ElicitationResponse::Cancel)
    }
}

fn tool_of(call: &CallReference) -> Option<String> {
    match call {
        CallReference::Call { item, .. } => Some(item.to_string()),
        CallReference::Unknown => None,
    }
}

fn ruled_tool<'c>(listed: &CatalogTool<'c>) -> RuledTool<'c> {
    let definition = Some(&*listed.definition.raw);
    RuledTool { name: listed.public_name, server: Some(listed.server), definition }
}

fn description(definition: &RawValue) -> Option<String> {
    let text = skim::member(definition.get(), "description").and_then(skim::decode_string)?;
    Some(text.into())
}

fn sampling_texts(request: &SamplingRequest<'_>) -> Vec<(&'static str, String)> {
    let system = (!request.system.is_empty()).then(|| ("system", request.system.to_owned()));
    let messages = request.messages.iter().map(|message| match message {
        Message::User(content) => ("user", content.to_text().into_owned()),
        Message::Assistant(assistant) => ("assistant", assistant.visible_text()),
        Message::ToolResults(_) => ("results", String::new()),
    });
    system.into_iter().chain(messages).collect()
}
