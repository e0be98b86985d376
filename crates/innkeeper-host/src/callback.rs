//! What servers ask of the application in the middle of their work: who answers, and with what.

mod form;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use arc_swap::ArcSwap;
use innkeeper_protocol::envelope::code;
use innkeeper_protocol::{method, skim};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::audit::Fact;
use crate::text::shown;

/// A request that a server makes of the application.
#[derive(Clone, Debug)]
pub struct ServerRequest {
    /// The server that asks; the answer goes to it alone.
    pub server: Arc<str>,
    /// The method: `sampling/createMessage`, `elicitation/create`, `roots/list`, or its own.
    pub method: Box<str>,
    /// The parameters as the server sent them.
    pub params: Option<Box<RawValue>>,
}

/// Why the application does not answer a request: sent to the server as a JSON-RPC error.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct Refusal {
    /// The JSON-RPC error code.
    pub code: i64,
    /// What the server is told.
    pub message: String,
}

impl Refusal {
    /// A refusal with a code of its own.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn unknown() -> Self {
        Self::new(code::METHOD_NOT_FOUND, "this client does not offer that")
    }

    pub(crate) fn internal(message: &str) -> Self {
        Self::new(code::INTERNAL_ERROR, message)
    }
}

/// An answer on its way: the result object of the request, or a refusal.
pub type Answering = Pin<Box<dyn Future<Output = Result<Value, Refusal>> + Send>>;

/// Answers requests of servers.
///
/// Any `Fn(ServerRequest) -> impl Future<Output = Result<Value, Refusal>>` is one. It runs in a task
/// of the host; a panic in it becomes an error for the server. At most four requests of a server are
/// answered at a time and sixteen more wait; further ones are refused. An answer that takes longer
/// than the server's `maxTotalTimeout` is given up and the future dropped.
pub trait Callback: Send + Sync + 'static {
    /// Answers one request.
    fn answer(&self, request: ServerRequest) -> Answering;
}

impl<F, A> Callback for F
where
    F: Fn(ServerRequest) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Value, Refusal>> + Send + 'static,
{
    fn answer(&self, request: ServerRequest) -> Answering {
        Box::pin(self(request))
    }
}

/// The kinds of requests, as far as servers have to be told that they are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sampling,
    Elicitation,
    Roots,
    Other,
}

impl Kind {
    pub(crate) fn of(method: &str) -> Self {
        match method {
            method::SAMPLING_CREATE_MESSAGE => Self::Sampling,
            method::ELICITATION_CREATE => Self::Elicitation,
            method::ROOTS_LIST => Self::Roots,
            _ => Self::Other,
        }
    }
}

/// Which requests a callback answers, and what servers are told of it.
#[derive(Clone, Debug)]
pub struct Answers {
    server: Option<Arc<str>>,
    sampling: Option<Value>,
    elicitation: Option<Value>,
    roots: Option<Value>,
    other: bool,
    secrets: bool,
}

impl Answers {
    const NOTHING: Self = Self {
        server: None,
        sampling: None,
        elicitation: None,
        roots: None,
        other: false,
        secrets: false,
    };

    /// Every request of every server: sampling, elicitation in forms, roots, and what is not known.
    pub fn everything() -> Self {
        let some = || Some(json!({}));
        let (sampling, elicitation, roots) = (some(), some(), some());
        Self { sampling, elicitation, roots, other: true, ..Self::NOTHING }
    }

    /// `sampling/createMessage`: have a model answer.
    pub fn sampling() -> Self {
        Self { sampling: Some(json!({})), ..Self::NOTHING }
    }

    /// `sampling/createMessage`, also where the model is to use tools.
    pub fn sampling_with_tools() -> Self {
        Self { sampling: Some(json!({ "tools": {} })), ..Self::NOTHING }
    }

    /// `elicitation/create` with a form: ask the user for values.
    pub fn elicitation() -> Self {
        Self { elicitation: Some(json!({})), ..Self::NOTHING }
    }

    /// `elicitation/create` with a form or with an address that the user is to visit.
    pub fn elicitation_with_urls() -> Self {
        Self { elicitation: Some(json!({ "form": {}, "url": {} })), ..Self::NOTHING }
    }

    /// `roots/list`: the directories a server may work in.
    pub fn roots() -> Self {
        Self { roots: Some(json!({})), ..Self::NOTHING }
    }

    /// Requests with methods of the server's own; nothing is declared for them.
    pub fn custom() -> Self {
        Self { other: true, ..Self::NOTHING }
    }

    /// The same requests of this server only. A callback for one server goes before one for all.
    #[must_use]
    pub fn of(self, server: &str) -> Self {
        Self { server: Some(server.into()), ..self }
    }

    /// Has forms answered, too, that ask for a password, a token, a card number or the like. Default:
    /// they are refused, as the specification wants it: a secret is asked for at an address that the
    /// user visits. Fields are told by their names, titles and formats, so that a server may still
    /// ask in other words.
    #[must_use]
    pub fn with_secrets(self) -> Self {
        Self { secrets: true, ..self }
    }

    fn declares(&self, kind: Kind) -> Option<Value> {
        match kind {
            Kind::Sampling => self.sampling.clone(),
            Kind::Elicitation => self.elicitation.clone(),
            Kind::Roots => self.roots.clone(),
            Kind::Other => self.other.then(|| json!({})),
        }
    }

    fn refuses(&self, kind: Kind, request: &ServerRequest) -> Option<Refusal> {
        let no = |message| Some(Refusal::new(code::INVALID_PARAMS, message));
        let params = request.params.as_deref().map(RawValue::get).unwrap_or_default();
        // What is absent is `null` where some libraries write it.
        let member = |key| skim::member(params, key).filter(|value| *value != "null");
        let declared = |way| self.declares(kind).is_some_and(|it| it.get(way).is_some());
        if kind == Kind::Sampling {
            let tools = ["tools", "toolChoice"].iter().any(|key| member(key).is_some());
            let undeclared = tools && !declared("tools");
            return undeclared.then(|| no("sampling with tools is not declared")).flatten();
        }
        if kind != Kind::Elicitation {
            return None;
        }
        // Where no mode is declared, forms are.
        match member("mode") {
            None | Some(r#""form""#) => {}
            Some(r#""url""#) if declared("url") => {}
            Some(_) => return no("elicitation in this mode is not declared"),
        }
        if self.secrets {
            return None;
        }
        let field = form::secret_field(request.params.as_deref())?;
        Fact::SecretAsked { what: &shown(&field, form::SHOWN) }.tell(&request.server);
        no("a form must not ask for a secret: have the user visit an address")
    }

    fn without(&mut self, other: &Self) {
        if other.server != self.server {
            return;
        }
        let gone = |mine: &mut Option<Value>, theirs: &Option<Value>| {
            if theirs.is_some() {
                *mine = None;
            }
        };
        gone(&mut self.sampling, &other.sampling);
        gone(&mut self.elicitation, &other.elicitation);
        gone(&mut self.roots, &other.roots);
        self.other &= !other.other;
    }

    fn is_empty(&self) -> bool {
        let Self { sampling, elicitation, roots, other, .. } = self;
        sampling.is_none() && elicitation.is_none() && roots.is_none() && !other
    }
}

#[derive(Clone)]
struct Entry {
    answers: Answers,
    callback: Arc<dyn Callback>,
}

/// Who answers what; shared by everything of a host, and changed while it runs.
#[derive(Clone, Default)]
pub(crate) struct Callbacks(Arc<ArcSwap<Vec<Entry>>>);

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callbacks").field("registered", &self.0.load().len()).finish()
    }
}

impl Callbacks {
    /// Has `callback` answer, in place of whatever answered before; `None` has nobody answer.
    pub(crate) fn set(&self, answers: &Answers, callback: Option<&Arc<dyn Callback>>) {
        self.0.rcu(|entries| {
            let mut entries = entries.to_vec();
            for entry in &mut entries {
                entry.answers.without(answers);
            }
            entries.retain(|entry| !entry.answers.is_empty());
            if let Some(callback) = callback {
                let answers = answers.clone();
                entries.push(Entry { answers, callback: callback.clone() });
            }
            entries
        });
    }

    /// Who answers this kind of request of this server, and what is declared of it.
    fn find(&self, server: &str, kind: Kind) -> Option<(Entry, Value)> {
        let entries = self.0.load();
        let of = |wanted: Option<&str>| {
            let mut entries =
                entries.iter().filter(|entry| entry.answers.server.as_deref() == wanted);
            entries.find_map(|entry| Some((entry.clone(), entry.answers.declares(kind)?)))
        };
        of(Some(server)).or_else(|| of(None))
    }

    /// What this server is told the client can do: only what somebody answers.
    pub(crate) fn capabilities(&self, server: &str) -> Box<RawValue> {
        let named = [
            ("sampling", Kind::Sampling),
            ("elicitation", Kind::Elicitation),
            ("roots", Kind::Roots),
        ];
        let declared = named.into_iter().filter_map(|(name, kind)| {
            let (_, declared) = self.find(server, kind)?;
            Some((name.to_owned(), declared))
        });
        let declared: Map<String, Value> = declared.collect();
        // An object with text for keys can always be written.
        to_raw_value(&declared).unwrap_or_default()
    }

    /// Whether somebody answers this kind of request of this server.
    pub(crate) fn answers(&self, server: &str, kind: Kind) -> bool {
        self.find(server, kind).is_some()
    }

    /// Why a request is refused before the application hears of it, whoever answers its kind: it comes
    /// in a way that was not declared, or it is a form that asks for a secret, which is audited here.
    pub(crate) fn refuses(&self, request: &ServerRequest) -> Option<Refusal> {
        let kind = Kind::of(&request.method);
        let (Entry { answers, .. }, _) = self.find(&request.server, kind)?;
        answers.refuses(kind, request)
    }

    /// Begins to answer; `None` without anybody who does. The callback runs inside of this.
    pub(crate) fn answer(&self, request: ServerRequest) -> Option<Answering> {
        let kind = Kind::of(&request.method);
        let (Entry { answers, callback }, _) = self.find(&request.server, kind)?;
        match answers.refuses(kind, &request) {
            Some(refusal) => Some(Box::pin(async move { Err(refusal) })),
            None => Some(callback.answer(request)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callback(word: &'static str) -> Arc<dyn Callback> {
        Arc::new(move |_: ServerRequest| async move { Ok(json!(word)) })
    }

    async fn answer(callbacks: &Callbacks, server: &str, method: &str) -> Option<Value> {
        let request = ServerRequest { server: server.into(), method: method.into(), params: None };
        callbacks.answer(request)?.await.ok()
    }

    /// Proves: FR5.2
    #[tokio::test]
    async fn the_callback_of_a_server_goes_before_that_of_all_and_none_unregisters() {
        let callbacks = Callbacks::default();
        assert!(answer(&callbacks, "a", method::ROOTS_LIST).await.is_none());
        callbacks.set(&Answers::everything(), Some(&callback("all")));
        callbacks.set(&Answers::roots().of("a"), Some(&callback("a's roots")));
        assert_eq!(answer(&callbacks, "a", method::ROOTS_LIST).await, Some(json!("a's roots")));
        assert_eq!(answer(&callbacks, "b", method::ROOTS_LIST).await, Some(json!("all")));
        assert_eq!(answer(&callbacks, "a", "own/method").await, Some(json!("all")));
        callbacks.set(&Answers::roots().of("a"), None);
        assert_eq!(answer(&callbacks, "a", method::ROOTS_LIST).await, Some(json!("all")));
        callbacks.set(&Answers::everything(), None);
        assert!(answer(&callbacks, "a", method::ROOTS_LIST).await.is_none());
    }

    #[tokio::test]
    async fn a_form_that_asks_for_a_secret_is_refused_unless_the_application_wants_it() {
        let properties = json!({ "password": { "type": "string" } });
        let params = json!({ "message": "?", "requestedSchema": { "properties": properties } });
        let request = ServerRequest {
            server: "a".into(),
            method: method::ELICITATION_CREATE.into(),
            params: Some(to_raw_value(&params).unwrap()),
        };
        let callbacks = Callbacks::default();
        callbacks.set(&Answers::elicitation(), Some(&callback("filled in")));
        let refused = callbacks.answer(request.clone()).unwrap().await.unwrap_err();
        assert_eq!(refused.code, code::INVALID_PARAMS);
        callbacks.set(&Answers::elicitation().with_secrets().of("a"), Some(&callback("a's")));
        assert_eq!(callbacks.answer(request.clone()).unwrap().await, Ok(json!("a's")));
        let other = ServerRequest { server: "b".into(), ..request };
        assert!(callbacks.answer(other).unwrap().await.is_err());
    }

    #[tokio::test]
    async fn a_way_of_asking_that_was_not_declared_is_refused_before_the_application_hears_of_it() {
        let form = json!({ "city": {} });
        let asks = |method: &str, params: &Value| ServerRequest {
            server: "a".into(),
            method: method.into(),
            params: Some(to_raw_value(params).unwrap()),
        };
        let urls = [
            json!({ "mode": "url", "url": "https://a", "message": "?" }),
            json!({ "mode": "url", "requestedSchema": { "properties": form } }),
            json!({ "mode": "voice", "message": "?" }),
        ];
        let tools = [json!({ "tools": [] }), json!({ "toolChoice": { "mode": "auto" } })];
        let callbacks = Callbacks::default();
        let refused = |request: &ServerRequest| {
            callbacks.refuses(request).is_some_and(|no| no.code == code::INVALID_PARAMS)
        };
        callbacks.set(&Answers::everything(), Some(&callback("all")));
        for params in &urls {
            assert!(refused(&asks(method::ELICITATION_CREATE, params)), "{params}");
        }
        for params in &tools {
            assert!(refused(&asks(method::SAMPLING_CREATE_MESSAGE, params)), "{params}");
        }
        assert!(!refused(&asks(method::SAMPLING_CREATE_MESSAGE, &json!({ "tools": null }))));
        assert!(!refused(&asks(method::ELICITATION_CREATE, &json!({ "mode": null }))));
        callbacks.set(&Answers::elicitation_with_urls(), Some(&callback("urls")));
        callbacks.set(&Answers::sampling_with_tools(), Some(&callback("tools")));
        assert!(!refused(&asks(method::ELICITATION_CREATE, &urls[0])));
        assert!(refused(&asks(method::ELICITATION_CREATE, &urls[2])));
        for params in &tools {
            assert!(!refused(&asks(method::SAMPLING_CREATE_MESSAGE, params)), "{params}");
        }
    }

    #[test]
    fn only_what_somebody_answers_is_declared_and_only_to_the_server_it_is_for() {
        let callbacks = Callbacks::default();
        let told = |server: &str| -> Value {
            serde_json::from_str(callbacks.capabilities(server).get()).unwrap()
        };
        assert_eq!(told("a"), json!({}));
        callbacks.set(&Answers::sampling_with_tools().of("a"), Some(&callback("x")));
        callbacks.set(&Answers::elicitation_with_urls(), Some(&callback("x")));
        callbacks.set(&Answers::custom(), Some(&callback("x")));
        let elicitation = json!({ "form": {}, "url": {} });
        assert_eq!(told("a"), json!({ "sampling": { "tools": {} }, "elicitation": elicitation }),);
        assert_eq!(told("b"), json!({ "elicitation": elicitation }));
    }
}
