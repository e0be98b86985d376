//! Maps the tools of a request to an API's names and schemas.

use std::sync::Arc;

use innkeeper_toolcall::{Aliases, LoweredSchema, Tools, lower_schemas, parse_strict};
use serde_json::Value;

use super::{ProviderApi, Response, StreamChunk};
use crate::conversation::{PartContent, ToolCall};

/// Tools in the form of one API, encoded once per set of tools.
#[derive(Debug)]
pub(crate) struct EncodedTools {
    pub(crate) tools: Arc<Tools>,
    /// Whether the provider may enforce the schemas that allow it.
    pub(crate) strict: bool,
    api: ProviderApi,
    aliases: Aliases,
    encoded: Vec<EncodedTool>,
}

#[derive(Debug)]
pub(crate) struct EncodedTool {
    pub(crate) alias: String,
    pub(crate) description: String,
    /// The lowered schema, and whether to send `strict` with it.
    pub(crate) lowered_schema: LoweredSchema,
}

impl EncodedTool {
    pub(crate) fn schema(&self) -> &Value {
        &self.lowered_schema.schema
    }
}

impl EncodedTools {
    pub(crate) fn new(tools: Arc<Tools>, api: ProviderApi, strict: bool) -> Self {
        let aliases = Aliases::new(tools.iter().map(|tool| tool.name.as_str()), api.name_rules());
        let lowered_schemas =
            lower_schemas(tools.iter().map(|tool| &tool.input_schema), api.dialect(strict));
        let encoded = tools
            .iter()
            .zip(lowered_schemas)
            .map(|(tool, lowered_schema)| EncodedTool {
                alias: aliases.alias(&tool.name).unwrap_or(&tool.name).to_owned(),
                description: tool.description.clone(),
                lowered_schema,
            })
            .collect();
        Self { tools, strict, api, aliases, encoded }
    }

    /// Returns the tools in the order of the request.
    pub(crate) fn as_slice(&self) -> &[EncodedTool] {
        &self.encoded
    }

    /// Returns the public name behind the API's name of a tool.
    pub(crate) fn public_name<'n>(&'n self, alias: &'n str) -> &'n str {
        self.aliases.canonical(alias).unwrap_or(alias)
    }

    pub(crate) fn has_alias(&self, name: &str) -> bool {
        self.aliases.canonical(name).is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.encoded.is_empty()
    }

    /// Returns the API's name of a tool, also of a tool that is no longer available.
    pub(crate) fn alias(&self, name: &str) -> String {
        if let Some(alias) = self.aliases.alias(name) {
            return alias.to_owned();
        }
        let single = Aliases::new([name], self.api.name_rules());
        single.alias(name).unwrap_or(name).to_owned()
    }

    /// Restores public tool names and the original argument names. A call with an invalid name
    /// loses its provider block, because the provider rejects that block in a later request.
    pub(crate) fn restore_names(&self, response: &mut Response) {
        for part in &mut response.message.parts {
            if let PartContent::ToolCall(call) = &mut part.content {
                if !self.api.name_rules().allows(&call.name) {
                    part.provider_block = None;
                }
                self.restore_call(call);
            }
        }
    }

    /// Restores the public tool name in a chunk. Arguments stay as the model writes them.
    pub(crate) fn restore_chunk_name(&self, chunk: &mut StreamChunk) {
        if let StreamChunk::ToolCallStart { name, .. } = chunk
            && let Some(public) = self.aliases.canonical(name)
        {
            public.clone_into(name);
        }
    }

    fn restore_call(&self, call: &mut ToolCall) {
        let Some(at) = self.encoded.iter().position(|tool| tool.alias == call.name) else { return };
        if let Some(public) = self.aliases.canonical(&call.name) {
            call.name = public.to_owned();
        }
        let lowered_schema = &self.encoded[at].lowered_schema;
        // Invalid JSON is left to the repair of the call.
        if let Ok(arguments) = parse_strict(&call.arguments) {
            call.arguments = lowered_schema.restore_arguments(arguments).to_string();
        }
    }
}
