//! A connection to Redis over which all scripts run, and what a script responds.

mod notices;
mod reply;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult, ScriptInvocation};
use tokio::sync::Semaphore;

use crate::store_error::StoreError;

pub(crate) use self::notices::deliver_notices;
pub(crate) use self::reply::Reply;

/// Maximum time of one call, with the connection if there is none.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A Redis 7 or later without Redis Cluster, for the stores of a gateway. The stores share one
/// connection, which is made when a script needs a new one.
///
/// A script fails after two seconds without a response. The stores work again as soon as Redis
/// responds.
pub struct RedisClient {
    client: Client,
    current: Mutex<CurrentConnection>,
    /// One call connects, the others wait for its connection.
    connecting: Semaphore,
}

#[derive(Default)]
struct CurrentConnection {
    connection: Option<MultiplexedConnection>,
    /// The number of connections so far.
    number: u64,
}

impl fmt::Debug for RedisClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisClient").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl RedisClient {
    /// Creates a client for `redis://[USER:PASSWORD@]HOST:PORT/DATABASE`, or with TLS for
    /// `rediss://…`, without connecting.
    ///
    /// # Errors
    ///
    /// The URL is not valid. The error does not contain the URL.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        // The error of the library can contain parts of the URL, and the URL can contain a password.
        let client = Client::open(url).map_err(|_| StoreError {
            reason: "the URL is not `redis://[USER:PASSWORD@]HOST:PORT/DATABASE`".to_owned(),
        })?;
        Ok(Self { client, current: Mutex::default(), connecting: Semaphore::new(1) })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the host and the port.
    pub(crate) fn address(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }

    fn current(&self) -> MutexGuard<'_, CurrentConnection> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a script. A call that fails for another reason than its script can have run or not.
    pub(crate) async fn run(&self, call: &ScriptInvocation<'_>) -> Result<Reply, StoreError> {
        let mut used = None;
        let limited = tokio::time::timeout(RESPONSE_TIMEOUT, async {
            let (mut connection, number) = self.connection().await?;
            used = Some(number);
            call.invoke_async(&mut connection).await
        });
        let Ok(response) = limited.await else {
            self.disconnect(used);
            let seconds = RESPONSE_TIMEOUT.as_secs();
            let address = self.address();
            let reason = format!("Redis at {address} did not respond within {seconds} s");
            return Err(StoreError { reason });
        };
        response.map_err(|error| {
            if error.is_io_error() || error.is_unrecoverable_error() {
                self.disconnect(used);
            }
            self.store_error(&error)
        })
    }

    /// Returns the connection, and its number.
    async fn connection(&self) -> RedisResult<(MultiplexedConnection, u64)> {
        if let Some(current) = self.current().get() {
            return Ok(current);
        }
        let _permit = self.connecting.acquire().await;
        if let Some(current) = self.current().get() {
            return Ok(current);
        }
        // `run` limits the time.
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let mut connection =
            self.client.get_multiplexed_async_connection_with_config(&config).await?;
        // Without a password, Redis rejects a script for the number of its arguments.
        redis::cmd("PING").query_async::<()>(&mut connection).await?;
        let mut current = self.current();
        current.number += 1;
        current.connection = Some(connection.clone());
        Ok((connection, current.number))
    }

    /// Drops the connection with a number: the next call makes a new one.
    fn disconnect(&self, number: Option<u64>) {
        let mut current = self.current();
        if Some(current.number) == number {
            current.connection = None;
        }
    }

    /// Drops the connection that Redis has probably closed.
    pub(crate) fn disconnect_current(&self) {
        self.current().connection = None;
    }

    fn store_error(&self, error: &RedisError) -> StoreError {
        let mut reason = format!("Redis at {}: {error}", self.address());
        let settings = self.client.get_connection_info().redis_settings();
        // A server can repeat what the server received.
        if let Some(password) = settings.password().filter(|password| !password.is_empty()) {
            reason = reason.replace(password, "***");
        }
        StoreError { reason }
    }
}

impl CurrentConnection {
    fn get(&self) -> Option<(MultiplexedConnection, u64)> {
        self.connection.clone().map(|connection| (connection, self.number))
    }
}

#[cfg(test)]
mod tests {
    use redis::Script;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Takes one connection after the other, and responds to the script of each one differently.
    async fn serve(listener: TcpListener, responses: [&str; 2]) {
        let mut connections = Vec::new();
        for response in responses {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut received = [0; 1024];
            loop {
                let length = connection.read(&mut received).await.unwrap();
                let commands = String::from_utf8_lossy(&received[..length]);
                if commands.contains("EVALSHA") {
                    connection.write_all(response.as_bytes()).await.unwrap();
                    break;
                }
                let setup = commands.matches("CLIENT").count() + commands.matches("PING").count();
                connection.write_all("+OK\r\n".repeat(setup).as_bytes()).await.unwrap();
            }
            // The server closes no connection: only the client can tell that one is broken.
            connections.push(connection);
        }
        std::future::pending::<()>().await;
    }

    #[tokio::test]
    async fn a_response_that_is_not_from_redis_ends_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = RedisClient::new(&format!("redis://{}", listener.local_addr().unwrap()));
        let client = client.unwrap();
        let script = Script::new("return 'done'");
        let calling = async {
            let call = script.prepare_invoke();
            client.run(&call).await.unwrap_err();
            client.run(&call).await.unwrap()
        };
        tokio::select! {
            reply = calling => assert_eq!(reply.name(), "done"),
            () = serve(listener, ["HTTP/1.1 400\r\n", "+done\r\n"]) => {}
        }
    }
}
