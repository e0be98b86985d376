//! The tools of a request under the names and with the schemas of a wire, and the way back.

use std::sync::Arc;

use innkeeper_toolcall::{Aliases, Fitted, Tools, fit_all, strict};
use serde_json::Value;

use super::{Piece, Response, Wire};
use crate::conversation::{Said, ToolCall};

/// Tools as one wire has them. Made once for a set of tools, used for every request with it.
#[derive(Debug)]
pub(crate) struct Offer {
    /// What it was made of.
    pub(crate) tools: Arc<Tools>,
    wire: Wire,
    aliases: Aliases,
    offered: Vec<Offered>,
}

/// One tool, ready to be sent.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) alias: String,
    pub(crate) description: String,
    /// The schema is here, and whether to send `strict` with it.
    pub(crate) fitted: Fitted,
}

impl Offered {
    pub(crate) fn schema(&self) -> &Value {
        &self.fitted.schema
    }
}

impl Offer {
    pub(crate) fn new(tools: Arc<Tools>, wire: Wire, strict: bool) -> Self {
        let aliases = Aliases::new(tools.iter().map(|tool| tool.name.as_str()), wire.names());
        let fitted = fit_all(tools.iter().map(|tool| &tool.input_schema), wire.dialect(strict));
        let offered = tools
            .iter()
            .zip(fitted)
            .map(|(tool, fitted)| Offered {
                alias: aliases.alias(&tool.name).unwrap_or(&tool.name).to_owned(),
                description: tool.description.clone(),
                fitted,
            })
            .collect();
        Self { tools, wire, aliases, offered }
    }

    /// In the order in which they are offered.
    pub(crate) fn list(&self) -> &[Offered] {
        &self.offered
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.offered.is_empty()
    }

    /// What a tool is called over the wire; also one that is no longer offered.
    pub(crate) fn alias(&self, name: &str) -> String {
        if let Some(alias) = self.aliases.alias(name) {
            return alias.to_owned();
        }
        let alone = Aliases::new([name], self.wire.names());
        alone.alias(name).unwrap_or(name).to_owned()
    }

    /// Puts public names and members' own names in the place of the wire's. A call of what is no name
    /// loses its provider's words: the provider itself refuses them when they come back.
    pub(crate) fn put_back(&self, response: &mut Response) {
        for part in &mut response.answer.parts {
            if let Said::Call(call) = &mut part.said {
                if !self.wire.names().allow(&call.name) {
                    part.native = None;
                }
                self.call_back(call);
            }
        }
    }

    /// The same for a piece. Arguments stay as the model writes them.
    pub(crate) fn piece_back(&self, piece: &mut Piece) {
        if let Piece::CallStart { name, .. } = piece
            && let Some(public) = self.aliases.canonical(name)
        {
            public.clone_into(name);
        }
    }

    fn call_back(&self, call: &mut ToolCall) {
        let Some(at) = self.offered.iter().position(|it| it.alias == call.name) else { return };
        if let Some(public) = self.aliases.canonical(&call.name) {
            call.name = public.to_owned();
        }
        let fitted = &self.offered[at].fitted;
        // What is not JSON is left to who repairs it.
        if let Ok(arguments) = strict(&call.arguments) {
            call.arguments = fitted.unfit(arguments).to_string();
        }
    }
}
