//! Prompts that describe tools to models without native tool calls.

mod example;
mod message;
mod retry;
mod sanitized_tool;
mod streaming;
mod template;

pub use message::{PromptMessage, Role};
pub use retry::{FailedAttempt, retry_prompt};
pub use streaming::{TOOL_CALL_RULES, streaming_system_prompt};
pub use template::{Template, TemplateError};

#[cfg(test)]
mod tests;
