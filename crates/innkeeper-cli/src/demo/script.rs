//! A scripted chain of tool calls: each step's arguments come from what earlier steps learned.

use std::error::Error;

use serde_json::Value;

/// Whatever can call a tool and hand back its result object.
pub(crate) trait Runner {
    /// Calls `SERVER.TOOL`.
    async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> Result<Value, Box<dyn Error + Send + Sync>>;
}

/// One step of a chain whose memory is `M`.
#[derive(Debug)]
pub(super) struct Step<M> {
    pub(super) tool: &'static str,
    /// What the step is for, in a few words.
    pub(super) purpose: &'static str,
    pub(super) arguments: fn(&M) -> Value,
    /// Takes what later steps need out of the result, and says what that was.
    pub(super) learn: fn(&mut M, &Value) -> Result<String, Surprise>,
}

/// A result that is not what the chain needs: says what was expected.
#[derive(Debug)]
pub(super) struct Surprise(pub(super) &'static str);

/// A step that is done.
#[derive(Debug)]
pub(crate) struct Done {
    /// Counted from 1.
    pub(crate) number: usize,
    pub(crate) tool: &'static str,
    pub(crate) purpose: &'static str,
    pub(crate) arguments: Value,
    /// What the result taught.
    pub(crate) learned: String,
}

/// Why a chain did not reach its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptError {
    #[error("step {number}, calling `{tool}`, failed")]
    Call { number: usize, tool: &'static str, source: Box<dyn Error + Send + Sync> },
    #[error("step {number}: `{tool}` answered with an error: {text}")]
    Tool { number: usize, tool: &'static str, text: String },
    #[error("step {number}: the result of `{tool}` lacks {expected}")]
    Surprise { number: usize, tool: &'static str, expected: &'static str },
}

/// Runs the steps one after the other; gives back how many there were.
pub(super) async fn run<M: Default>(
    chain: &[Step<M>],
    runner: &mut impl Runner,
    seen: &mut impl FnMut(&Done),
) -> Result<usize, ScriptError> {
    let mut memory = M::default();
    for (index, step) in chain.iter().enumerate() {
        let (number, tool) = (index + 1, step.tool);
        let arguments = (step.arguments)(&memory);
        let result = runner
            .call(tool, arguments.clone())
            .await
            .map_err(|source| ScriptError::Call { number, tool, source })?;
        if result["isError"] == true {
            return Err(ScriptError::Tool { number, tool, text: text_of(&result) });
        }
        let learned = (step.learn)(&mut memory, &result)
            .map_err(|Surprise(expected)| ScriptError::Surprise { number, tool, expected })?;
        seen(&Done { number, tool, purpose: step.purpose, arguments, learned });
    }
    Ok(chain.len())
}

/// All text blocks of a tool result, one below the other.
pub(super) fn text_of(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    let texts: Vec<_> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// A string of the structured content.
pub(super) fn structured(
    result: &Value,
    key: &str,
    expected: &'static str,
) -> Result<String, Surprise> {
    let found = result["structuredContent"][key].as_str();
    found.map(str::to_owned).ok_or(Surprise(expected))
}
