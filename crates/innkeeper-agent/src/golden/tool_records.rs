//! Tools as they were offered: to a record, and back.

use innkeeper_golden::{ToolRecord, UnavailableRecord};
use innkeeper_protocol::view;
use innkeeper_toolcall::Tool;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::tools::{AvailableTool, ToolAnnotations, UnavailableTool};

/// Returns the record of a tool. A tool that no server sent gets a definition in MCP's form.
pub(super) fn tool_record(available: &AvailableTool) -> ToolRecord {
    let definition = match &available.definition {
        Some(definition) => RawValue::to_owned(definition),
        None => made_definition(available),
    };
    ToolRecord {
        name: available.tool.name.clone(),
        hash: ToolRecord::hash_of(&definition),
        from_server: available.definition.is_some(),
        refusal: available.refusal.as_deref().map(str::to_owned),
        definition,
    }
}

fn made_definition(available: &AvailableTool) -> Box<RawValue> {
    let AvailableTool { tool, annotations, .. } = available;
    let ToolAnnotations { read_only, idempotent, destructive, open_world } = *annotations;
    let definition = json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": {
            "readOnlyHint": read_only,
            "idempotentHint": idempotent,
            "destructiveHint": destructive,
            "openWorldHint": open_world,
        },
    });
    to_raw_value(&definition).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Returns the tool of a record.
///
/// # Errors
///
/// The definition is not that of a tool.
pub(super) fn available_tool(record: &ToolRecord) -> Result<AvailableTool, view::ViewError> {
    let tool = view::Tool::from_raw(&record.definition)?;
    let description = tool.description.as_deref().unwrap_or_default();
    let schema = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
    Ok(AvailableTool {
        tool: Tool::new(&*record.name, description, schema),
        annotations: (&tool.annotations).into(),
        definition: record.from_server.then(|| record.definition.clone().into()),
        refusal: record.refusal.as_deref().map(Into::into),
    })
}

pub(super) fn unavailable_record(tool: &UnavailableTool) -> UnavailableRecord {
    UnavailableRecord {
        name: tool.name.clone(),
        server: tool.server.to_string(),
        reason: tool.reason.to_string(),
    }
}

pub(super) fn unavailable_tool(record: &UnavailableRecord) -> UnavailableTool {
    UnavailableTool {
        name: record.name.clone(),
        server: record.server.as_str().into(),
        reason: record.reason.as_str().into(),
    }
}
