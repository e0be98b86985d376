//! The configuration, the trait and the template of document 004, quoted from the document.

use mcp_host::{
    LlmProvider, LlmRequest, LlmResponse, McpHostConfig, OllamaProvider, PromptTemplate,
    SafetyConfig, async_trait,
};

/// Proves: P32
#[rustfmt::skip]
#[test]
#[expect(clippy::str_to_string, reason = "the lines are those of the document")]
fn the_configuration_is_the_default_one_with_a_blocked_tool() {
    // Document 004, "Configuration".
    let config = McpHostConfig {
        max_retries: 3,
        retry_delay_ms: 1000,
        temperature_reduction: 0.1,
        safety_constraints: SafetyConfig {
            max_tokens_per_request: 4096,
            max_tools_per_request: 5,
            rate_limit_per_minute: 30,
            blocked_tool_patterns: vec!["rm".to_string()],
        },
    };
    let mut expected = McpHostConfig::default();
    expected.safety_constraints.blocked_tool_patterns.push("rm".to_owned());
    assert_eq!(config, expected);
}

/// Proves: P33
#[rustfmt::skip]
#[test]
fn the_template_is_the_one_of_the_models_family() {
    // Document 004, "Custom Prompt Templates".
    let template = PromptTemplate::new("custom-model");
    // Customize tool formatting and parsing

    let expected = PromptTemplate::new("another-custom-model");
    assert_eq!(template.layout().family(), expected.layout().family());
    assert_ne!(template.layout().family(), PromptTemplate::new("mistral").layout().family());
}

/// The trait as the document defines it.
mod quoted {
    use mcp_host::{LlmRequest, LlmResponse, Result, async_trait};

    // Document 004, "Adding New LLM Providers".
    #[expect(unreachable_pub, reason = "the lines are those of the document")]
    #[rustfmt::skip]
    #[async_trait]
    pub trait LlmProvider: Send + Sync {
        async fn generate(&self, request: LlmRequest) -> Result<LlmResponse>;
        fn name(&self) -> &str;
        fn supports_tools(&self) -> bool { false }
    }
}

/// Each provider of the library has the methods of the document, with the same signatures.
#[async_trait]
impl<P: LlmProvider> quoted::LlmProvider for P {
    async fn generate(&self, request: LlmRequest) -> mcp_host::Result<LlmResponse> {
        LlmProvider::generate(self, request).await
    }
    fn name(&self) -> &str {
        LlmProvider::name(self)
    }
    fn supports_tools(&self) -> bool {
        LlmProvider::supports_tools(self)
    }
}

/// A provider with the methods that the document's trait requires.
struct Parrot;

#[async_trait]
impl LlmProvider for Parrot {
    async fn generate(&self, request: LlmRequest) -> mcp_host::Result<LlmResponse> {
        Ok(LlmResponse::from_text(request.system))
    }
    fn name(&self) -> &str {
        "parrot"
    }
}

/// Proves: P5
#[tokio::test]
async fn the_trait_of_the_document_and_the_trait_of_the_library_have_the_same_methods() {
    let provider: Box<dyn quoted::LlmProvider> = Box::new(Parrot);
    assert_eq!((provider.name(), provider.supports_tools()), ("parrot", false));
    let request = LlmRequest { system: "Say it.".to_owned(), ..LlmRequest::default() };
    let response = provider.generate(request).await.unwrap();
    assert_eq!(response, LlmResponse::from_text("Say it."));
    let ollama: Box<dyn quoted::LlmProvider> =
        Box::new(OllamaProvider::new("llama3.1:8b".to_owned()));
    assert_eq!((ollama.name(), ollama.supports_tools()), ("ollama", true));
}
