//! The registered callbacks.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::capabilities::CallbackCapabilities;
use super::{Callback, CallbackError, CallbackFuture, RequestKind, ServerRequest, require_object};

#[derive(Clone)]
struct CallbackEntry {
    capabilities: CallbackCapabilities,
    callback: Arc<dyn Callback>,
}

/// The callbacks of a host, shared by all its parts. The application can change them while the host
/// runs.
#[derive(Clone, Default)]
pub(crate) struct CallbackRegistry(Arc<ArcSwap<Vec<CallbackEntry>>>);

impl fmt::Debug for CallbackRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackRegistry").field("registered", &self.0.load().len()).finish()
    }
}

impl CallbackRegistry {
    /// Registers `callback` in place of the previous callback, or removes the previous callback
    /// with `None`.
    pub(crate) fn set(
        &self,
        capabilities: &CallbackCapabilities,
        callback: Option<&Arc<dyn Callback>>,
    ) {
        self.0.rcu(|entries| {
            let mut entries = entries.to_vec();
            for entry in &mut entries {
                entry.capabilities.remove(capabilities);
            }
            entries.retain(|entry| !entry.capabilities.is_empty());
            if let Some(callback) = callback {
                let capabilities = capabilities.clone();
                entries.push(CallbackEntry { capabilities, callback: callback.clone() });
            }
            entries
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.load().is_empty()
    }

    /// Returns the callback for a kind of request of a server, with the declared capability.
    fn find(&self, server: &str, kind: RequestKind) -> Option<(CallbackEntry, Value)> {
        let entries = self.0.load();
        [Some(server), None].into_iter().find_map(|server| {
            let mut entries =
                entries.iter().filter(|entry| entry.capabilities.server.as_deref() == server);
            entries.find_map(|entry| Some((entry.clone(), entry.capabilities.capability(kind)?)))
        })
    }

    /// Returns the client capabilities for this server: only those with a callback.
    pub(crate) fn capabilities(&self, server: &str) -> Box<RawValue> {
        let known_kinds = [
            ("sampling", RequestKind::Sampling),
            ("elicitation", RequestKind::Elicitation),
            ("roots", RequestKind::Roots),
        ];
        let declared = known_kinds.into_iter().filter_map(|(name, kind)| {
            let (_, declared) = self.find(server, kind)?;
            Some((name.to_owned(), declared))
        });
        let declared: Map<String, Value> = declared.collect();
        // Serialization of a map with string keys cannot fail.
        to_raw_value(&declared).unwrap_or_default()
    }

    /// Returns what the callback for this kind of request of this server declares.
    pub(crate) fn capabilities_for(
        &self,
        server: &str,
        kind: RequestKind,
    ) -> Option<CallbackCapabilities> {
        self.find(server, kind).map(|(entry, _)| entry.capabilities)
    }

    pub(crate) fn has_callback(&self, server: &str, kind: RequestKind) -> bool {
        self.find(server, kind).is_some()
    }

    /// Returns the error for a request that the host rejects without a call of the application.
    ///
    /// The host rejects a request whose mode or feature is not declared, and a form that asks for a
    /// secret. The latter is written to the audit log here.
    pub(crate) fn rejection(&self, request: &ServerRequest) -> Option<CallbackError> {
        let kind = RequestKind::from_method(&request.method);
        let (CallbackEntry { capabilities, .. }, _) = self.find(&request.server, kind)?;
        capabilities.rejection(kind, request)
    }

    /// Returns the error for a request that the application must not pass to a remote client: a
    /// form that asks for a secret, unless the host's callback accepts such forms.
    pub(crate) fn forwarding_rejection(&self, request: &ServerRequest) -> Option<CallbackError> {
        let kind = RequestKind::from_method(&request.method);
        let entry = self.find(&request.server, kind);
        let allow_secrets = entry.is_some_and(|(entry, _)| entry.capabilities.allow_secrets);
        CallbackCapabilities { allow_secrets, ..CallbackCapabilities::all_features() }
            .rejection(kind, request)
    }

    /// Starts the callback of a request: the callback of the call, else the host's. Returns `None`
    /// if the host has no callback for the request, because only the host's callbacks declare
    /// capabilities. The first part of the callback runs inside this function.
    pub(crate) fn respond(
        &self,
        request: ServerRequest,
        call_callback: Option<&Arc<dyn Callback>>,
    ) -> Option<CallbackFuture> {
        let kind = RequestKind::from_method(&request.method);
        let (CallbackEntry { capabilities, callback }, _) = self.find(&request.server, kind)?;
        match capabilities.rejection(kind, &request) {
            Some(error) => Some(Box::pin(async move { Err(error) })),
            None => {
                let response = call_callback.unwrap_or(&callback).respond(request);
                Some(Box::pin(async move { response.await.and_then(require_object) }))
            }
        }
    }
}
