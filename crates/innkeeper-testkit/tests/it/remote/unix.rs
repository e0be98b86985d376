//! Tests of Streamable HTTP on a unix socket.

use innkeeper_testkit::{Fault, RemoteServer, fixture};

use super::http::within_timeout;
use super::{echo_call, streamable::SessionClient};
use crate::stdio_client::result_text;

#[tokio::test]
async fn a_unix_socket_carries_streamable_http_and_goes_with_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fx.sock");
    let reset = Fault::reset_mid_body().on_rpc_method("tools/call").only_nth(2);
    let remote =
        RemoteServer::for_fixture(fixture("a")).on_unix_socket(&path).fault(reset).start().await;
    assert_eq!(remote.url(), format!("unix://{}#/mcp", path.display()));
    assert_eq!(remote.config_entry()["type"], "http");
    let client = SessionClient::start_session(&remote).await;
    assert_eq!(
        result_text(&client.post(&echo_call(2, "x")).await.expect_event().await.message()),
        "x"
    );
    assert!(within_timeout(client.post(&echo_call(3, "x")).await.next_event()).await.is_err());
    drop(remote);
    assert!(!path.exists());
}
