//! Streamable HTTP on a unix socket.

use innkeeper_testkit::{Fault, Remote, fx};

use super::http::soon;
use super::{echo, streamable::Client};
use crate::talk::text;

#[tokio::test]
async fn a_unix_socket_carries_streamable_http_and_goes_with_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fx.sock");
    let reset = Fault::reset().on("tools/call").nth(2);
    let remote = Remote::of(fx("a")).on_unix_socket(&path).fault(reset).start().await;
    assert_eq!(remote.url(), format!("unix://{}#/mcp", path.display()));
    assert_eq!(remote.entry()["type"], "http");
    let client = Client::begin(&remote).await;
    assert_eq!(text(&client.post(&echo(2, "x")).await.event().await.message()), "x");
    assert!(soon(client.post(&echo(3, "x")).await.next()).await.is_err());
    drop(remote);
    assert!(!path.exists());
}
