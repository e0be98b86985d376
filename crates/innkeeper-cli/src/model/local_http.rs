//! A client for JSON requests to servers on this machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use innkeeper_host::{Environment, HttpClientError, http_client};
use serde_json::Value;

/// Maximum number of bytes in a response; a long model list has about 10,000.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// A client for local servers, without proxy and TLS.
#[derive(Clone, Debug)]
pub(crate) struct LocalHttpClient {
    client: reqwest::Client,
    timeout: Duration,
}

impl LocalHttpClient {
    /// Creates a client with a timeout per request.
    ///
    /// # Errors
    ///
    /// The HTTP client cannot be created.
    pub(crate) fn new(request_timeout: Duration) -> Result<Self, HttpClientError> {
        Ok(Self { client: http_client(&Environment::default(), false)?, timeout: request_timeout })
    }

    /// Returns the JSON body of a response with status 200, else `None`.
    pub(crate) async fn get_json(&self, port: u16, path: &str) -> Option<Value> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let request = self.client.get(format!("http://{address}{path}")).timeout(self.timeout);
        let mut response = request.send().await.ok()?;
        if response.status().as_u16() != 200 {
            return None;
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.ok()? {
            if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                return None;
            }
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).ok()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Fetches a response with a JSON string of the given size in bytes, quotes included.
    async fn fetch_response(bytes: usize) -> Option<Value> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.unwrap() > 0 {}
            let text = "x".repeat(bytes - 2);
            let response = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n\"{text}\"");
            // The client closes the connection at its limit.
            let _ = stream.write_all(response.as_bytes()).await;
        };
        let client = LocalHttpClient::new(Duration::from_secs(20)).unwrap();
        tokio::join!(client.get_json(port, "/"), serve).0
    }

    #[tokio::test]
    async fn a_response_is_read_up_to_its_limit_and_one_byte_more_is_none() {
        assert!(fetch_response(MAX_RESPONSE_BYTES).await.is_some());
        assert!(fetch_response(MAX_RESPONSE_BYTES + 1).await.is_none());
    }
}
