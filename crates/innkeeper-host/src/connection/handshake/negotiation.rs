//! The race of `server/discover` and `initialize`.

use std::time::Duration;

use innkeeper_protocol::request_meta::{DiscoverResult, EXTENSION_TASKS, RequestMeta};
use innkeeper_protocol::view::InitializeResult;
use innkeeper_protocol::{Era, Revision, method};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::revisions::{
    is_modern_error, is_unsupported_revision, offered_revision, rejected_revision_error,
    supports_revision, unknown_revision_error,
};
use super::{HandshakeClient, HandshakeProbe, HandshakeResult};
use crate::connection::call_recorder::millis;
use crate::error::ProtocolError;
use crate::session::{OutgoingRequest, RequestError, RequestResult, Session};

/// Time to wait for the response to `server/discover` before `initialize` is sent as well. Slow
/// interpreters need up to 5 s to start on a loaded machine; a wrong guess costs one message.
pub(super) const DISCOVER_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of one of the two requests.
enum ProbeState {
    NotSent,
    /// The request must not be sent.
    Excluded,
    Pending,
    Rejected(RequestError),
}

pub(super) struct Negotiation<'a> {
    session: &'a Session,
    client: HandshakeClient<'a>,
    /// Client capabilities in the format of the modern era.
    modern_capabilities: Box<RawValue>,
    deadline: Instant,
}

type HandshakeError = (RequestError, &'static str);

impl<'a> Negotiation<'a> {
    pub(super) fn new(
        session: &'a Session,
        client: HandshakeClient<'a>,
        deadline: Instant,
    ) -> Self {
        let modern_capabilities = with_extensions(&client.capabilities);
        Self { session, client, modern_capabilities, deadline }
    }

    /// Agrees on an era and a revision, or returns the error and the method that failed.
    pub(super) async fn run(
        &self,
        opening: HandshakeProbe,
    ) -> Result<HandshakeResult, HandshakeError> {
        let discover = self.discover();
        let initialize = self.initialize();
        tokio::pin!(discover, initialize);
        let (mut modern, mut legacy) = match opening {
            HandshakeProbe::Discover => (ProbeState::Pending, ProbeState::NotSent),
            HandshakeProbe::Initialize | HandshakeProbe::InitializeFirst => {
                (ProbeState::NotSent, ProbeState::Pending)
            }
            HandshakeProbe::InitializeOnly => (ProbeState::Excluded, ProbeState::Pending),
        };
        let is_guess = opening == HandshakeProbe::InitializeFirst;
        let silence = tokio::time::sleep(DISCOVER_TIMEOUT);
        tokio::pin!(silence);
        loop {
            tokio::select! {
                biased;
                answer = &mut discover, if matches!(modern, ProbeState::Pending) => match answer {
                    Ok(result) => match self.accept_modern(&result.into_inner()) {
                        Ok(greeting) => return Ok(greeting),
                        // Some servers answer every method with an arbitrary result; the other
                        // request decides.
                        Err((fault, _)) => {
                            modern = ProbeState::Rejected(fault);
                            legacy = send_if_unsent(legacy);
                        }
                    },
                    Err(RequestError::ErrorResponse(error))
                        if is_unsupported_revision(&error)
                            // A server that contradicts itself is quoted.
                            && !supports_revision(&error, Revision::LATEST) =>
                    {
                        modern = ProbeState::Rejected(rejected_revision_error(&error));
                        legacy = send_if_unsent(legacy);
                    }
                    Err(fault @ (RequestError::ErrorResponse(_) | RequestError::Protocol(_))) => {
                        modern = ProbeState::Rejected(fault);
                        legacy = send_if_unsent(legacy);
                    }
                    Err(fault) => return Err((fault, method::SERVER_DISCOVER)),
                },
                answer = &mut initialize, if matches!(legacy, ProbeState::Pending) => match answer {
                    Ok(result) => {
                        let ignored_discover = matches!(modern, ProbeState::Pending);
                        return self.accept_legacy(&result.into_inner(), ignored_discover);
                    }
                    Err(RequestError::ErrorResponse(error))
                        if !matches!(modern, ProbeState::Excluded)
                            && (is_modern_error(error.code) || is_guess) =>
                    {
                        legacy = ProbeState::Rejected(RequestError::ErrorResponse(error));
                        modern = send_if_unsent(modern);
                    }
                    Err(fault @ (RequestError::ErrorResponse(_) | RequestError::Protocol(_)))
                        if matches!(modern, ProbeState::Pending) =>
                    {
                        legacy = ProbeState::Rejected(fault);
                    }
                    Err(fault) => {
                        // What the server said of its revisions explains the rejection.
                        return Err(match modern {
                            ProbeState::Rejected(
                                versions @ RequestError::Protocol(
                                    ProtocolError::UnsupportedRevision { .. },
                                ),
                            ) => (versions, method::SERVER_DISCOVER),
                            ProbeState::Rejected(RequestError::ErrorResponse(error))
                                if is_unsupported_revision(&error) =>
                            {
                                (RequestError::ErrorResponse(error), method::SERVER_DISCOVER)
                            }
                            _ => (fault, method::INITIALIZE),
                        });
                    }
                },
                // A server that does not know the method may answer without the id of the request.
                () = self.session.unattributed_error(), if matches!(legacy, ProbeState::NotSent) => {
                    legacy = ProbeState::Pending;
                }
                () = &mut silence, if matches!(legacy, ProbeState::NotSent)
                    || (is_guess && matches!(modern, ProbeState::NotSent)) =>
                {
                    (modern, legacy) = (send_if_unsent(modern), send_if_unsent(legacy));
                }
            }
            if let (ProbeState::Rejected(_), ProbeState::Rejected(_)) = (&modern, &legacy) {
                let ProbeState::Rejected(failure) = modern else { continue };
                return Err((failure, method::SERVER_DISCOVER));
            }
        }
    }

    fn request_meta(&self) -> RequestMeta<'_> {
        RequestMeta {
            revision: Revision::LATEST,
            client_name: &self.client.info.name,
            client_version: &self.client.info.version,
            capabilities: Some(&self.modern_capabilities),
            log_level: None,
        }
    }

    async fn discover(&self) -> RequestResult {
        let params = json!({ "_meta": self.request_meta().to_meta(None) });
        let response = self.request(method::SERVER_DISCOVER, &params).await;
        match &response {
            // The error lists the requested revision as supported, so the request is sent again.
            Err(RequestError::ErrorResponse(error))
                if supports_revision(error, Revision::LATEST) =>
            {
                self.request(method::SERVER_DISCOVER, &params).await
            }
            _ => response,
        }
    }

    /// Sends `initialize`, and once more if the server rejects the revision and names another one
    /// that this host knows: no session exists yet.
    async fn initialize(&self) -> RequestResult {
        let response = self.initialize_with(Revision::LATEST_LEGACY).await;
        match response.as_ref().err().and_then(offered_revision) {
            Some(revision) => self.initialize_with(revision).await,
            None => response,
        }
    }

    async fn initialize_with(&self, revision: Revision) -> RequestResult {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": self.client.capabilities,
            "clientInfo": { "name": self.client.info.name, "version": self.client.info.version },
        });
        self.request(method::INITIALIZE, &params).await
    }

    async fn request(&self, method: &'static str, params: &Value) -> RequestResult {
        let id = self.session.next_id();
        let outgoing = OutgoingRequest::new(id, method, params, self.deadline);
        let outgoing = OutgoingRequest { cancellable: false, ..outgoing };
        let sent_at = Instant::now();
        let response = self.session.request(outgoing).await;
        let server = &**self.client.server;
        let latency_ms = millis(sent_at.elapsed());
        // A rejection also reveals the era, so it is not logged as an error.
        let outcome = response.as_ref().map_or_else(|error| error.kind().as_str(), |_| "ok");
        tracing::info!(server, method, id, latency_ms, outcome, "request");
        response
    }

    fn accept_modern(&self, raw: &RawValue) -> Result<HandshakeResult, HandshakeError> {
        let discovered = DiscoverResult::from_raw(raw)
            .map_err(|error| (shape_error(error), method::SERVER_DISCOVER))?;
        let latest = Revision::LATEST.as_str();
        if !discovered.supported_versions.iter().any(|version| version == latest) {
            let server_versions = discovered.supported_versions.join(", ");
            return Err((unknown_revision_error(&server_versions), method::SERVER_DISCOVER));
        }
        self.session.set_revision(Revision::LATEST);
        Ok(HandshakeResult {
            revision: Revision::LATEST,
            meta: Some(self.request_meta().to_meta(None)),
            capabilities: discovered.capabilities,
            server_info: discovered.server_info,
            instructions: discovered.instructions,
            ignored_discover: false,
            initialize_result: None,
        })
    }

    fn accept_legacy(
        &self,
        raw: &RawValue,
        ignored_discover: bool,
    ) -> Result<HandshakeResult, HandshakeError> {
        let discovered = InitializeResult::from_raw(raw)
            .map_err(|error| (shape_error(error), method::INITIALIZE))?;
        let revision = discovered.protocol_version.parse::<Revision>().ok();
        let Some(revision) = revision.filter(|revision| revision.era() == Era::Legacy) else {
            return Err((unknown_revision_error(&discovered.protocol_version), method::INITIALIZE));
        };
        self.session.set_revision(revision);
        self.session.notify(method::INITIALIZED);
        Ok(HandshakeResult {
            revision,
            meta: None,
            capabilities: discovered.capabilities,
            server_info: discovered.server_info_raw,
            instructions: discovered.instructions,
            ignored_discover,
            initialize_result: Some(raw.to_owned()),
        })
    }
}

/// Adds the extensions that the host supports to the capabilities.
fn with_extensions(capabilities: &RawValue) -> Box<RawValue> {
    let mut all: Map<String, Value> = serde_json::from_str(capabilities.get()).unwrap_or_default();
    all.insert("extensions".to_owned(), json!({ EXTENSION_TASKS: {} }));
    // Serialization of an object with string keys cannot fail.
    to_raw_value(&all).unwrap_or_default()
}

fn send_if_unsent(probe: ProbeState) -> ProbeState {
    match probe {
        ProbeState::NotSent => ProbeState::Pending,
        other => other,
    }
}

fn shape_error(error: innkeeper_protocol::ViewError) -> RequestError {
    RequestError::Protocol(ProtocolError::InvalidResult(error))
}
