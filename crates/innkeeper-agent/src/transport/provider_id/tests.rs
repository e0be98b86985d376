//! Tests of the choice of a provider.

use super::*;
use crate::provider::LlmProvider as _;

#[test]
fn a_key_is_trimmed_and_one_that_no_header_can_have_is_refused() {
    let with_key = |key: &str| {
        let selector = ModelSelector {
            provider: "openai".to_owned(),
            key: Some(Secret::new(key)),
            ..ModelSelector::default()
        };
        get_llm_client(&selector, &Environment::from_pairs([("OPENAI_API_KEY", "other")]))
    };
    let key = |key| with_key(key).unwrap().endpoint().key.clone().unwrap().expose().to_owned();
    assert_eq!(key("sk-1\n"), "sk-1");
    assert_eq!(key(" "), "other");
    let error = with_key("sk-1\nx").unwrap_err();
    assert!(matches!(error, ModelLookupError::InvalidKey { provider: "openai" }), "{error}");
}

fn client(provider: &str, variables: &[(&str, &str)]) -> Result<HttpProvider, ModelLookupError> {
    let selector = ModelSelector { provider: provider.to_owned(), ..ModelSelector::default() };
    get_llm_client(&selector, &Environment::from_pairs(variables.to_vec()))
}

/// Proves: G14, G17, G32
#[test]
fn a_provider_is_found_by_name_in_any_case_with_a_model_of_its_own() {
    let all = [("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k"), ("GEMINI_API_KEY", "k")];
    for (name, provider, model) in [
        ("OpenAI", "openai", "gpt-6.1-terra"),
        ("ANTHROPIC", "anthropic", "claude-sonnet-5-5"),
        (" gemini", "gemini", "gemini-3.8-flash"),
        ("ollama", "ollama", "llama3.1:8b"),
    ] {
        let client = client(name, &all).unwrap();
        assert_eq!((client.name(), client.model()), (provider, model));
    }
    let strange = client("watson", &all).unwrap_err().to_string();
    assert!(strange.contains("`watson`") && strange.contains("`anthropic`"), "{strange}");
    let other = [("INNKEEPER_OLLAMA_MODEL", "phi")];
    assert_eq!(client("ollama", &other).unwrap().model(), "phi");
    let model = Some("my-model".to_owned());
    let selector =
        ModelSelector { provider: "ollama".to_owned(), model, ..ModelSelector::default() };
    let other_client = get_llm_client(&selector, &Environment::from_pairs(other)).unwrap();
    assert_eq!(other_client.model(), "my-model");
}

/// Proves: G15
#[test]
fn a_key_comes_by_parameter_else_from_the_environment_and_is_missed_by_name() {
    let missing = client("gemini", &[("GOOGLE_API_KEY", " ")]).unwrap_err().to_string();
    assert!(missing.contains("`GOOGLE_API_KEY` or `GEMINI_API_KEY`"), "{missing}");
    let key = |selector: ModelSelector, variables: &[(&str, &str)]| {
        let environment = Environment::from_pairs(variables.to_vec());
        let client = get_llm_client(&selector, &environment)?;
        Ok::<_, ModelLookupError>(client.endpoint().key.as_ref().map(|key| key.expose().to_owned()))
    };
    let openai = || ModelSelector { provider: "openai".to_owned(), ..ModelSelector::default() };
    let set = [("OPENAI_API_KEY", "one"), ("MINE", "two")];
    assert_eq!(key(openai(), &set), Ok(Some("one".to_owned())));
    let variable = Some("MINE".to_owned());
    assert_eq!(
        key(ModelSelector { key_variable: variable, ..openai() }, &set),
        Ok(Some("two".to_owned()))
    );
    let explicit = Some(Secret::new("three"));
    assert_eq!(
        key(ModelSelector { key: explicit, ..openai() }, &set),
        Ok(Some("three".to_owned()))
    );
    let elsewhere = Some("http://localhost:1/v1".to_owned());
    let other = ModelSelector {
        provider: "openai-compatible".to_owned(),
        base_url: elsewhere,
        ..ModelSelector::default()
    };
    assert_eq!(key(other, &set), Ok(None), "no provider's key goes to another server");
}

#[test]
fn the_interface_is_chosen_by_the_model_and_can_be_named() {
    let resolve = |provider_id: ProviderId, api: Option<&str>, model: &str| {
        provider_id.resolve_api(api, model)
    };
    assert_eq!(resolve(ProviderId::OpenAi, None, "gpt-6-luna"), Ok(ProviderApi::OpenAiResponses));
    assert_eq!(
        resolve(ProviderId::OpenAi, None, "gpt-4o-audio-preview"),
        Ok(ProviderApi::OpenAiChat)
    );
    assert_eq!(
        resolve(ProviderId::OpenAi, Some("chat"), "gpt-6-luna"),
        Ok(ProviderApi::OpenAiChat)
    );
    assert_eq!(
        resolve(ProviderId::Gemini, None, "gemini-4-argon"),
        Ok(ProviderApi::GeminiInteractions)
    );
    assert_eq!(
        resolve(ProviderId::Gemini, Some("interactions"), "x"),
        Ok(ProviderApi::GeminiInteractions)
    );
    assert!(resolve(ProviderId::Anthropic, Some("chat"), "x").is_err());
    assert!(client("openai-compatible", &[]).is_err());
}
