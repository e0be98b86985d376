//! What the callbacks of an application can answer.

use std::sync::Arc;

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::skim;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::form::FormProblem;
use super::{CallbackError, RequestKind, ServerRequest, form};
use crate::audit::AuditEvent;
use crate::text::display_prefix;

/// The requests that a callback handles, and the capabilities declared for them.
#[derive(Clone, Debug)]
pub struct CallbackCapabilities {
    pub(super) server: Option<Arc<str>>,
    pub(super) sampling: Option<Value>,
    pub(super) elicitation: Option<Value>,
    pub(super) roots: Option<Value>,
    pub(super) custom: bool,
    pub(super) allow_secrets: bool,
    pub(super) for_many_clients: bool,
}

impl CallbackCapabilities {
    pub(super) const NONE: Self = Self {
        server: None,
        sampling: None,
        elicitation: None,
        roots: None,
        custom: false,
        allow_secrets: false,
        for_many_clients: false,
    };

    /// Every request of every server: sampling without tools, elicitation with forms, roots and
    /// custom methods.
    pub fn all() -> Self {
        Self {
            sampling: Some(json!({})),
            elicitation: Some(json!({})),
            roots: Some(json!({})),
            custom: true,
            ..Self::NONE
        }
    }

    /// `sampling/createMessage`: a model generates a message.
    pub fn sampling() -> Self {
        Self { sampling: Some(json!({})), ..Self::NONE }
    }

    /// `sampling/createMessage`, also for requests with tools.
    pub fn sampling_with_tools() -> Self {
        Self { sampling: Some(json!({ "tools": {} })), ..Self::NONE }
    }

    /// `elicitation/create` with a form: the user enters values.
    pub fn elicitation() -> Self {
        Self { elicitation: Some(json!({})), ..Self::NONE }
    }

    /// `elicitation/create` with a form or with a URL for the user to open.
    pub fn elicitation_with_urls() -> Self {
        Self { elicitation: Some(json!({ "form": {}, "url": {} })), ..Self::NONE }
    }

    /// `roots/list`: the directories in which a server may work.
    pub fn roots() -> Self {
        Self { roots: Some(json!({})), ..Self::NONE }
    }

    /// Requests with custom methods. MCP has no capability for custom methods.
    pub fn custom() -> Self {
        Self { custom: true, ..Self::NONE }
    }

    /// Limits the callback to one server. A callback for one server takes precedence over a
    /// callback for all servers.
    #[must_use]
    pub fn for_server(self, server: &str) -> Self {
        Self { server: Some(server.into()), ..self }
    }

    /// Also accepts forms that ask for a password, a token, a card number or another secret.
    ///
    /// Default: the host rejects such forms, as the MCP specification requires; a server must ask
    /// for a secret at a URL. The host detects secret fields by name, title and format, so a server
    /// can avoid the detection with other wording.
    #[must_use]
    pub fn allow_secret_forms(self) -> Self {
        Self { allow_secrets: true, ..self }
    }

    /// For an application that calls on behalf of many remote clients.
    ///
    /// Over a pipe, a request is passed to this callback unless the protocol ties it to a call: the
    /// only call in flight is not necessarily the one that the request is about. The limits for the
    /// user of the application, one form and four requests at a time, do not apply. Default: the
    /// application has one user.
    #[must_use]
    pub fn for_many_clients(self) -> Self {
        Self { for_many_clients: true, ..self }
    }

    pub(crate) fn is_for_many_clients(&self) -> bool {
        self.for_many_clients
    }

    /// Every request with every feature.
    pub(super) fn all_features() -> Self {
        let Self { sampling, .. } = Self::sampling_with_tools();
        let Self { elicitation, .. } = Self::elicitation_with_urls();
        Self { sampling, elicitation, ..Self::all() }
    }

    pub(super) fn capability(&self, kind: RequestKind) -> Option<Value> {
        match kind {
            RequestKind::Sampling => self.sampling.clone(),
            RequestKind::Elicitation => self.elicitation.clone(),
            RequestKind::Roots => self.roots.clone(),
            RequestKind::Other => self.custom.then(|| json!({})),
        }
    }

    pub(super) fn rejection(
        &self,
        kind: RequestKind,
        request: &ServerRequest,
    ) -> Option<CallbackError> {
        let no = |message| Some(CallbackError::new(code::INVALID_PARAMS, message));
        let params = request.params.as_deref().map(RawValue::get).unwrap_or_default();
        // The checks read one member of each name, and the application may read another.
        if kind != RequestKind::Other && skim::has_duplicate_key(params) {
            return no("two members of one object have the same name");
        }
        // Some libraries write `null` for an absent member.
        let member = |key| skim::member(params, key).filter(|value| *value != "null");
        let is_declared = |feature| {
            self.capability(kind).is_some_and(|capability| capability.get(feature).is_some())
        };
        if kind == RequestKind::Sampling {
            let tools = ["tools", "toolChoice"].iter().any(|key| member(key).is_some());
            let undeclared = tools && !is_declared("tools");
            return undeclared.then(|| no("capability `sampling.tools` is not declared")).flatten();
        }
        if kind != RequestKind::Elicitation {
            return None;
        }
        // An `elicitation` capability without modes declares forms.
        match member("mode") {
            None | Some(r#""form""#) if is_declared("form") || !is_declared("url") => {}
            Some(r#""url""#) if is_declared("url") => {}
            _ => return no("elicitation mode is not declared"),
        }
        if self.allow_secrets {
            return None;
        }
        match form::find_form_problem(request.params.as_deref())? {
            FormProblem::Secret(field) => {
                let subject = &display_prefix(&field, form::MAX_SHOWN_CHARS);
                AuditEvent::SecretAsked { subject }.emit(&request.server);
                no("forms must not ask for secrets: use `url` mode")
            }
            FormProblem::NotChecked(reason) => no(reason),
        }
    }

    pub(super) fn remove(&mut self, other: &Self) {
        if other.server != self.server {
            return;
        }
        for (capability, removed) in [
            (&mut self.sampling, &other.sampling),
            (&mut self.elicitation, &other.elicitation),
            (&mut self.roots, &other.roots),
        ] {
            if removed.is_some() {
                *capability = None;
            }
        }
        self.custom &= !other.custom;
    }

    pub(super) fn is_empty(&self) -> bool {
        let Self { sampling, elicitation, roots, custom, .. } = self;
        sampling.is_none() && elicitation.is_none() && roots.is_none() && !custom
    }
}
