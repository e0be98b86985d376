//! Questions to servers of this machine: one request, one bounded answer in JSON.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use innkeeper_host::{Environment, HttpClientError, http_client};
use serde_json::Value;

/// The most bytes of an answer; a long list of models has some ten thousand.
const ANSWER: usize = 1 << 20;

/// Asks servers of this machine; through no proxy, and without TLS.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    client: reqwest::Client,
    patience: Duration,
}

impl Local {
    /// One that waits so long for each answer.
    ///
    /// # Errors
    ///
    /// There is no HTTP client.
    pub(crate) fn new(patience: Duration) -> Result<Self, HttpClientError> {
        Ok(Self { client: http_client(&Environment::default(), false)?, patience })
    }

    /// What the server at a port answers with status 200, if it is JSON.
    pub(crate) async fn get(&self, port: u16, path: &str) -> Option<Value> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let request = self.client.get(format!("http://{address}{path}")).timeout(self.patience);
        let mut response = request.send().await.ok()?;
        if response.status().as_u16() != 200 {
            return None;
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.ok()? {
            if body.len() + piece.len() > ANSWER {
                return None;
            }
            body.extend_from_slice(&piece);
        }
        serde_json::from_slice(&body).ok()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// What comes of an answer with a string of so many bytes, quotes included.
    async fn answered(bytes: usize) -> Option<Value> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.unwrap() > 0 {}
            let text = "x".repeat(bytes - 2);
            let answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n\"{text}\"");
            // Whoever has seen enough hangs up.
            drop(stream.write_all(answer.as_bytes()).await);
        };
        let client = Local::new(Duration::from_secs(20)).unwrap();
        tokio::join!(client.get(port, "/"), serve).0
    }

    #[tokio::test]
    async fn an_answer_is_read_up_to_its_limit_and_one_byte_more_is_none() {
        assert!(answered(ANSWER).await.is_some());
        assert!(answered(ANSWER + 1).await.is_none());
    }
}
