//! Signing in as the suite has it: no browser, the page answers with where it leads.

use std::sync::Arc;

use innkeeper_host::{UserAgent, Visit, Visiting};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Where the suite has a description of a client.
const METADATA: &str = "https://conformance-test.local/client-metadata.json";

/// Nobody listens there: the address is read, not visited.
const REDIRECT: &str = "http://localhost:3000/callback";

/// The key `oauth` of the server under test, out of what the suite tells.
pub(crate) fn settings(scenario: &str, context: &Value) -> Value {
    let mut oauth = Map::new();
    oauth.insert("clientMetadataUrl".to_owned(), json!(METADATA));
    let names = [
        ("client_id", "clientId"),
        ("client_secret", "clientSecret"),
        ("private_key_pem", "privateKey"),
    ];
    for (told, name) in names {
        if let Some(value) = context[told].as_str() {
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

/// Asks for the page and takes the address that it leads to.
#[derive(Debug)]
pub(crate) struct Headless;

impl UserAgent for Headless {
    fn redirect_uri(&self) -> String {
        REDIRECT.to_owned()
    }

    fn visit(&self, visit: Visit) -> Visiting {
        let visited = Arc::new(visit.url);
        Box::pin(async move { location(&visited).await.map_err(|error| error.to_string()) })
    }
}

/// The `Location` that a page of plain HTTP answers with.
async fn location(url: &str) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let rest = url.strip_prefix("http://").ok_or("the page is not on this machine")?;
    let (host, path) = rest.split_once('/').ok_or("the page has no path")?;
    let mut stream = TcpStream::connect(host).await?;
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    };
    Ok(answer.lines().find_map(header).ok_or("the page leads nowhere")?)
}
