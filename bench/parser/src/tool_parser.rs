//! The crate `tool-parser`, used as in its gateway: one parser per response.

use openai_protocol::common::{Function, Tool};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tool_parser::{QwenParser, ToolParser};

use crate::{BenchParser, chunks};

/// The Hermes parser of the crate.
pub(crate) struct ToolParserCrate {
    runtime: Runtime,
    tools: Vec<Tool>,
}

impl ToolParserCrate {
    pub(crate) fn new() -> Result<Self, String> {
        let properties = json!({"path": {"type": "string"}, "content": {"type": "string"}});
        let function = Function {
            name: "write_file".to_owned(),
            description: Some("Writes a file.".to_owned()),
            parameters: json!({"type": "object", "properties": properties}),
            strict: None,
            extra: Default::default(),
        };
        let tools = vec![Tool { tool_type: "function".to_owned(), function }];
        let runtime = Builder::new_current_thread().build().map_err(|error| error.to_string())?;
        Ok(Self { runtime, tools })
    }
}

impl BenchParser for ToolParserCrate {
    fn parse(&mut self, text: &str, piece: usize) -> Result<usize, String> {
        let mut parser = QwenParser::new();
        let (mut shown, mut arguments) = (0, String::new());
        self.runtime.block_on(async {
            for piece in chunks(text, piece) {
                let found = parser.parse_incremental(piece, &self.tools).await;
                let found = found.map_err(|error| error.to_string())?;
                shown += found.normal_text.len();
                found.calls.iter().for_each(|call| arguments.push_str(&call.parameters));
            }
            for rest in parser.get_unstreamed_tool_args().into_iter().flatten() {
                arguments.push_str(&rest.parameters);
            }
            shown += parser.take_unstreamed_normal_text().len();
            Ok::<_, String>(())
        })?;
        if arguments.is_empty() {
            return Ok(shown);
        }
        let arguments: Value = serde_json::from_str(&arguments).map_err(|e| e.to_string())?;
        Ok(arguments["content"].as_str().map_or(0, str::len))
    }
}
