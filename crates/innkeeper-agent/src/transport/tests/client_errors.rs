//! Errors of clients as errors of models.

use std::sync::Arc;

use innkeeper_host::Environment;

use super::{KEY, error_chain, provider, request};
use crate::provider::{LlmErrorKind, LlmProvider as _, ProviderApi};
use crate::transport::client::{HttpClient as _, HttpError, HttpErrorSource, OutgoingRequest};
use crate::transport::in_memory::InMemoryClient;
use crate::transport::reqwest_client::ReqwestClient;
use crate::transport::{Endpoint, HttpProvider, ModelSelector, get_llm_client};

const API: ProviderApi = ProviderApi::OpenAiChat;

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct NestedError {
    message: String,
    source: Option<HttpErrorSource>,
}

#[tokio::test]
async fn each_error_of_a_client_has_its_kind_and_a_message_with_the_address() {
    let source = || HttpErrorSource::from("the cause");
    let address = "models.test:443";
    let unreachable = format!("cannot connect to {address}");
    let lost = format!("the connection to {address} was lost");
    for (error, kind, message) in [
        (
            HttpError::ClientSetup { source: source() },
            LlmErrorKind::Connection,
            "cannot create the HTTP client",
        ),
        (
            HttpError::InvalidRequest { source: source() },
            LlmErrorKind::Connection,
            "invalid base URL",
        ),
        (HttpError::Connect { source: source() }, LlmErrorKind::Connection, &*unreachable),
        (HttpError::ConnectTimedOut { source: source() }, LlmErrorKind::TimedOut, &*unreachable),
        (HttpError::TimedOut { source: source() }, LlmErrorKind::TimedOut, &*lost),
        (HttpError::Disconnected { source: source() }, LlmErrorKind::Connection, &*lost),
    ] {
        let client = InMemoryClient::new([error]);
        let error = provider(API, &client).generate(request("Hi")).await.unwrap_err();
        assert_eq!((error.kind, &*error.message), (kind, message));
        assert_eq!(error.source.unwrap().to_string(), "the cause");
    }
}

#[tokio::test]
async fn a_key_in_an_error_of_a_client_is_masked() {
    let inner = NestedError { message: format!("bad header {KEY}"), source: None };
    let outer = NestedError { message: "not sent".to_owned(), source: Some(inner.into()) };
    let client = InMemoryClient::new([HttpError::InvalidRequest { source: outer.into() }]);
    let error = provider(API, &client).generate(request("Hi")).await.unwrap_err();
    let chain = error_chain(&error);
    assert!(chain.contains("not sent: bad header") && !chain.contains(KEY), "{chain}");
}

#[tokio::test]
async fn an_invalid_url_is_an_invalid_request_that_does_not_show_the_url() {
    let client = Arc::new(ReqwestClient::new(Environment::default()));
    for url in ["http://user:secret@", "not a url: secret", "https://user:secret@:1"] {
        let request = OutgoingRequest {
            method: reqwest::Method::GET,
            url: url.to_owned(),
            headers: reqwest::header::HeaderMap::new(),
            body: bytes::Bytes::new(),
            iteration: 0,
        };
        let error = client.send(request).await.unwrap_err();
        assert!(matches!(error, HttpError::InvalidRequest { .. }), "{url}: {error:?}");
        assert!(!error_chain(&error).contains("secret"), "{error:?}");
    }
}

#[tokio::test]
async fn a_client_is_created_for_the_first_request_and_reports_an_invalid_proxy() {
    let environment = Environment::from_pairs([("https_proxy", "::")]);
    let provider = HttpProvider::new(Endpoint { environment, ..super::endpoint(API) });
    let error = provider.generate(request("Hi")).await.unwrap_err();
    assert_eq!(&*error.message, "cannot create the HTTP client");
    assert!(error_chain(&error).contains("`https_proxy`"), "{error:?}");
}

#[test]
fn a_client_of_a_model_has_the_whole_environment_for_its_proxies() {
    let selector = ModelSelector { provider: "ollama".to_owned(), ..ModelSelector::default() };
    let environment = Environment::from_pairs([("https_proxy", "http://proxy:1")]);
    let client = get_llm_client(&selector, &environment).unwrap();
    assert_eq!(client.endpoint().environment.get("https_proxy"), Some("http://proxy:1"));
}
