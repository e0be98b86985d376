//! Sign-in for the conformance suite, without a browser.
//!
//! The authorization page of the suite responds with a redirect at once.

use std::sync::Arc;

use innkeeper_host::{AuthorizationRequest, RedirectFuture, UserAgent};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The URL of the client metadata document in the suite.
const CLIENT_METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";

/// The redirect URI, without a listener: the program only parses the address.
const REDIRECT_URI: &str = "http://localhost:3000/callback";

/// The configuration key `oauth` of the server under test, from the context of the scenario.
pub(crate) fn oauth_config(scenario: &str, context: &Value) -> Value {
    let mut oauth = Map::new();
    oauth.insert("clientMetadataUrl".to_owned(), json!(CLIENT_METADATA_URL));
    let names = [
        ("client_id", "clientId"),
        ("client_secret", "clientSecret"),
        ("private_key_pem", "privateKey"),
    ];
    for (key, name) in names {
        if let Some(value) = context[key].as_str() {
            oauth.insert(name.to_owned(), json!(value));
        }
    }
    if scenario.starts_with("auth/client-credentials") {
        oauth.insert("grant".to_owned(), json!("client_credentials"));
    }
    if let Some(issuer) = context["idp_issuer"].as_str() {
        let enterprise = json!({
            "issuer": issuer,
            "tokenEndpoint": context["idp_token_endpoint"],
            "clientId": context["idp_client_id"],
            "idToken": context["idp_id_token"],
        });
        oauth.insert("enterprise".to_owned(), enterprise);
    }
    Value::Object(oauth)
}

/// Requests the authorization page and returns the address of its redirect.
#[derive(Debug)]
pub(crate) struct HeadlessUserAgent;

impl UserAgent for HeadlessUserAgent {
    fn redirect_uri(&self) -> String {
        REDIRECT_URI.to_owned()
    }

    fn authorize(&self, visit: AuthorizationRequest) -> RedirectFuture {
        let visited = Arc::new(visit.url);
        Box::pin(async move {
            fetch_redirect_location(&visited).await.map_err(|error| error.to_string())
        })
    }
}

/// Returns the `Location` header of a page over plain HTTP.
async fn fetch_redirect_location(
    url: &str,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let rest = url.strip_prefix("http://").ok_or("the page is not on this machine")?;
    let (host, path) = rest.split_once('/').ok_or("the page has no path")?;
    let mut stream = TcpStream::connect(host).await?;
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await?;
    let response = String::from_utf8_lossy(&response);
    Ok(response
        .lines()
        .find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
        })
        .ok_or("the page has no redirect")?)
}
