//! The handshake: finds out which era a server speaks and agrees on a revision, without poisoning slow ones.
//!
//! A modern server may refuse `initialize` for ever once it has seen `server/discover`, and a
//! legacy one may stay silent on it. So after some silence both questions are open at once, and
//! whichever is answered usably decides; nothing is killed for being slow.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::modern::{DiscoverResult, EXTENSION_TASKS, RequestMeta};
use innkeeper_protocol::view::{InitializeResult, ServerCapabilities};
use innkeeper_protocol::{Era, ErrorObject, Revision, method};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::connection::{millis, name_fault};
use super::session::{Answer, Fault, Outgoing, Session};
use crate::error::{CallError, ProtocolFault};

/// How long a server may be silent on `server/discover` before `initialize` is sent as well. Slow
/// interpreters take up to 5 s to start on a loaded machine; a wrong guess costs one message.
const PATIENCE: Duration = Duration::from_secs(5);

/// How much of what a server calls its revisions is shown.
const SHOWN: usize = 200;

/// Who the host says it is.
#[derive(Clone, Debug)]
pub struct ClientInfo {
    /// The name of the application or of this program.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Default for ClientInfo {
    fn default() -> Self {
        Self { name: "innkeeper".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// Which question comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// `server/discover`, as the specification advises.
    Discover,
    /// `initialize`: for a server whose process ended when it was asked the other.
    Initialize,
    /// `initialize` and nothing else: over a transport that only the legacy era has.
    InitializeOnly,
}

/// Who greets a server, and what it is told that the client can do.
#[derive(Debug)]
pub(crate) struct Client<'a> {
    pub(crate) server: &'a Arc<str>,
    pub(crate) info: &'a ClientInfo,
    pub(crate) capabilities: Box<RawValue>,
}

/// What a server said about itself.
#[derive(Debug)]
pub(crate) struct Greeting {
    pub(crate) revision: Revision,
    pub(crate) meta: Option<Box<RawValue>>,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) server_info: Option<Box<RawValue>>,
    pub(crate) instructions: Option<String>,
}

/// Agrees on era and revision, by `deadline` at the latest.
pub(crate) async fn greet(
    session: &Session,
    client: Client<'_>,
    opening: Opening,
    deadline: Instant,
) -> Result<Greeting, CallError> {
    let started = Instant::now();
    let extended = extended(&client.capabilities);
    let talk = Talk { session, client, extended, deadline };
    talk.run(opening).await.map_err(|(fault, method)| {
        name_fault(talk.client.server, fault, method, deadline.saturating_duration_since(started))
    })
}

/// Where one of the two questions stands.
enum Asked {
    NotYet,
    /// It is out of the question.
    Never,
    Open,
    Refused(Fault),
}

struct Talk<'a> {
    session: &'a Session,
    client: Client<'a>,
    /// The client's capabilities as the modern era has them.
    extended: Box<RawValue>,
    deadline: Instant,
}

type Failed = (Fault, &'static str);

impl Talk<'_> {
    async fn run(&self, opening: Opening) -> Result<Greeting, Failed> {
        let discover = self.discover();
        let initialize = self.initialize();
        tokio::pin!(discover, initialize);
        let (mut modern, mut legacy) = match opening {
            Opening::Discover => (Asked::Open, Asked::NotYet),
            Opening::Initialize => (Asked::NotYet, Asked::Open),
            Opening::InitializeOnly => (Asked::Never, Asked::Open),
        };
        let silence = tokio::time::sleep(PATIENCE);
        tokio::pin!(silence);
        loop {
            tokio::select! {
                biased;
                answer = &mut discover, if matches!(modern, Asked::Open) => match answer {
                    Ok(result) => match self.accept_modern(&result.take()) {
                        Ok(greeting) => return Ok(greeting),
                        // Some answer anything with anything: the other question decides.
                        Err((fault, _)) => {
                            modern = Asked::Refused(fault);
                            legacy = open(legacy);
                        }
                    },
                    Err(Fault::Answer(error)) if wants_other_revision(&error) => {
                        modern = Asked::Refused(refused_revision(&error));
                        legacy = open(legacy);
                    }
                    Err(fault @ (Fault::Answer(_) | Fault::Protocol(_))) => {
                        modern = Asked::Refused(fault);
                        legacy = open(legacy);
                    }
                    Err(fault) => return Err((fault, method::SERVER_DISCOVER)),
                },
                answer = &mut initialize, if matches!(legacy, Asked::Open) => match answer {
                    Ok(result) => return self.accept_legacy(&result.take()),
                    Err(Fault::Answer(error))
                        if is_modern(error.code) && !matches!(modern, Asked::Never) =>
                    {
                        legacy = Asked::Refused(Fault::Answer(error));
                        modern = open(modern);
                    }
                    Err(fault @ (Fault::Answer(_) | Fault::Protocol(_)))
                        if matches!(modern, Asked::Open) =>
                    {
                        legacy = Asked::Refused(fault);
                    }
                    Err(fault) => return Err((fault, method::INITIALIZE)),
                },
                () = &mut silence, if matches!(legacy, Asked::NotYet) => legacy = Asked::Open,
            }
            if let (Asked::Refused(_), Asked::Refused(_)) = (&modern, &legacy) {
                let Asked::Refused(fault) = modern else { continue };
                return Err((fault, method::SERVER_DISCOVER));
            }
        }
    }

    fn request_meta(&self) -> RequestMeta<'_> {
        RequestMeta {
            revision: Revision::LATEST,
            client_name: &self.client.info.name,
            client_version: &self.client.info.version,
            capabilities: Some(&self.extended),
            log_level: None,
        }
    }

    async fn discover(&self) -> Answer {
        let params = json!({ "_meta": self.request_meta().to_meta(None) });
        let answer = self.ask(method::SERVER_DISCOVER, &params).await;
        match &answer {
            // It names the very revision that it was asked in; once more, then.
            Err(Fault::Answer(error)) if supports(error, Revision::LATEST) => {
                self.ask(method::SERVER_DISCOVER, &params).await
            }
            _ => answer,
        }
    }

    async fn initialize(&self) -> Answer {
        let params = json!({
            "protocolVersion": Revision::LATEST_LEGACY,
            "capabilities": self.client.capabilities,
            "clientInfo": { "name": self.client.info.name, "version": self.client.info.version },
        });
        self.ask(method::INITIALIZE, &params).await
    }

    async fn ask(&self, method: &'static str, params: &Value) -> Answer {
        let id = self.session.next_id();
        let outgoing = Outgoing::new(id, method, params, self.deadline);
        let outgoing = Outgoing { cancellable: false, ..outgoing };
        let asked = Instant::now();
        let answer = self.session.request(outgoing).await;
        let (server, latency_ms) = (&**self.client.server, millis(asked.elapsed()));
        // A refusal is one of the ways to learn the era, so it is no error here.
        let outcome = answer.as_ref().map_or_else(|fault| fault.kind().as_str(), |_| "ok");
        tracing::info!(server, method, id, latency_ms, outcome, "request");
        answer
    }

    fn accept_modern(&self, raw: &RawValue) -> Result<Greeting, Failed> {
        let found =
            DiscoverResult::read(raw).map_err(|error| (shape(error), method::SERVER_DISCOVER))?;
        let latest = Revision::LATEST.as_str();
        if !found.supported_versions.iter().any(|version| version == latest) {
            let theirs = found.supported_versions.join(", ");
            return Err((unknown_revision(&theirs), method::SERVER_DISCOVER));
        }
        self.session.agree(Revision::LATEST);
        Ok(Greeting {
            revision: Revision::LATEST,
            meta: Some(self.request_meta().to_meta(None)),
            capabilities: found.capabilities,
            server_info: found.server_info,
            instructions: found.instructions,
        })
    }

    fn accept_legacy(&self, raw: &RawValue) -> Result<Greeting, Failed> {
        let found =
            InitializeResult::read(raw).map_err(|error| (shape(error), method::INITIALIZE))?;
        let revision = found.protocol_version.parse::<Revision>().ok();
        let Some(revision) = revision.filter(|revision| revision.era() == Era::Legacy) else {
            return Err((unknown_revision(&found.protocol_version), method::INITIALIZE));
        };
        self.session.agree(revision);
        self.session.notify(method::INITIALIZED);
        Ok(Greeting {
            revision,
            meta: None,
            capabilities: found.capabilities,
            server_info: Some(found.server_info_raw),
            instructions: found.instructions,
        })
    }
}

/// The capabilities with the extensions that are spoken here.
fn extended(capabilities: &RawValue) -> Box<RawValue> {
    let mut all: Map<String, Value> = serde_json::from_str(capabilities.get()).unwrap_or_default();
    all.insert("extensions".to_owned(), json!({ EXTENSION_TASKS: {} }));
    // An object with text for keys can always be written.
    to_raw_value(&all).unwrap_or_default()
}

fn open(asked: Asked) -> Asked {
    match asked {
        Asked::NotYet => Asked::Open,
        other => other,
    }
}

/// Whether only a server of the modern era answers with this code.
fn is_modern(code: i64) -> bool {
    [
        code::HEADER_MISMATCH,
        code::MISSING_REQUIRED_CLIENT_CAPABILITY,
        code::UNSUPPORTED_PROTOCOL_VERSION,
    ]
    .contains(&code)
}

fn wants_other_revision(error: &ErrorObject) -> bool {
    error.code == code::UNSUPPORTED_PROTOCOL_VERSION
}

/// Whether a refusal of a revision says that this one is spoken.
fn supports(error: &ErrorObject, revision: Revision) -> bool {
    let data =
        error.data.as_deref().and_then(|data| serde_json::from_str::<Value>(data.get()).ok());
    let supported = data.as_ref().and_then(|data| data.get("supported")?.as_array());
    wants_other_revision(error)
        && supported.is_some_and(|all| all.iter().any(|one| *one == revision.as_str()))
}

fn refused_revision(error: &ErrorObject) -> Fault {
    let data = error.data.as_deref().and_then(|data| {
        let data: Value = serde_json::from_str(data.get()).ok()?;
        Some(data.get("supported")?.to_string())
    });
    unknown_revision(&data.unwrap_or_else(|| error.message.clone()))
}

fn unknown_revision(theirs: &str) -> Fault {
    let ours: Vec<&str> = Revision::ALL.iter().map(|revision| revision.as_str()).collect();
    let theirs = theirs.chars().take(SHOWN).collect::<String>();
    let theirs = crate::text::display_safe(&theirs).into();
    Fault::Protocol(ProtocolFault::Revision { theirs, ours: ours.join(", ").into() })
}

fn shape(error: innkeeper_protocol::ViewError) -> Fault {
    Fault::Protocol(ProtocolFault::Shape(error))
}

#[cfg(test)]
mod tests;
