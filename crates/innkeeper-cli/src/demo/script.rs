//! A scripted chain of tool calls; earlier results provide the arguments of later steps.

use std::error::Error;

use serde_json::Value;

/// Calls tools and returns their result objects.
pub(crate) trait ToolCaller {
    /// Calls `SERVER.TOOL`.
    async fn call_tool(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> Result<Value, Box<dyn Error + Send + Sync>>;
}

/// A step of a chain with state `M`.
#[derive(Debug)]
pub(super) struct DemoStep<M> {
    pub(super) tool: &'static str,
    /// Purpose of the step, in a few words.
    pub(super) purpose: &'static str,
    pub(super) arguments: fn(&M) -> Value,
    /// Stores values for later steps and returns a description of the result.
    pub(super) extract: fn(&mut M, &Value) -> Result<String, UnexpectedResult>,
}

/// A description of the value that a result lacks.
#[derive(Debug)]
pub(super) struct UnexpectedResult(pub(super) &'static str);

#[derive(Debug)]
pub(crate) struct CompletedStep {
    /// Number of the step, counted from 1.
    pub(crate) number: usize,
    pub(crate) tool: &'static str,
    pub(crate) purpose: &'static str,
    pub(crate) arguments: Value,
    /// Description of the result.
    pub(crate) finding: String,
}

/// Why a chain stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptError {
    #[error("step {number}: the call of `{tool}` failed")]
    CallFailed { number: usize, tool: &'static str, source: Box<dyn Error + Send + Sync> },
    #[error("step {number}: `{tool}` returned an error: {text}")]
    ToolFailed { number: usize, tool: &'static str, text: String },
    #[error("step {number}: the result of `{tool}` lacks {expected}")]
    UnexpectedResult { number: usize, tool: &'static str, expected: &'static str },
}

/// Runs the steps in order; returns the number of steps.
pub(super) async fn run_steps<M: Default>(
    chain: &[DemoStep<M>],
    runner: &mut impl ToolCaller,
    on_step: &mut impl FnMut(&CompletedStep),
) -> Result<usize, ScriptError> {
    let mut state = M::default();
    for (index, step) in chain.iter().enumerate() {
        let number = index + 1;
        let tool = step.tool;
        let arguments = (step.arguments)(&state);
        let result = runner
            .call_tool(tool, arguments.clone())
            .await
            .map_err(|source| ScriptError::CallFailed { number, tool, source })?;
        if result["isError"] == true {
            return Err(ScriptError::ToolFailed { number, tool, text: result_text(&result) });
        }
        let finding =
            (step.extract)(&mut state, &result).map_err(|UnexpectedResult(expected)| {
                ScriptError::UnexpectedResult { number, tool, expected }
            })?;
        on_step(&CompletedStep { number, tool, purpose: step.purpose, arguments, finding });
    }
    Ok(chain.len())
}

/// Joins all text blocks of a tool result with newlines.
pub(super) fn result_text(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    let texts: Vec<_> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

pub(super) fn structured_string(
    result: &Value,
    key: &str,
    expected: &'static str,
) -> Result<String, UnexpectedResult> {
    let value = result["structuredContent"][key].as_str();
    value.map(str::to_owned).ok_or(UnexpectedResult(expected))
}
