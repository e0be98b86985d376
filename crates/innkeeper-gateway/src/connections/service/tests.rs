//! Tests of the limits of connections.

use serde_json::json;

use super::super::store::{MemoryStore, StoreOptions};
use super::*;

fn service(max_connections: usize) -> ConnectionService {
    let options = StoreOptions { max_connections, ..StoreOptions::default() };
    let store = Arc::new(MemoryStore::new(options));
    let registry = CapabilityRegistry::with_core_features();
    ConnectionServiceBuilder::new(ConnectionOptions::default(), registry, store).build()
}

async fn open(service: &ConnectionService, user: &str) -> Result<ConnectionId, ConnectionError> {
    let request = json!({ "protocol_version": "1.0",
        "client": { "name": "test", "version": "1" },
        "capabilities": { "core.jsonrpc": true, "core.transport.http": true } });
    let request = serde_json::from_value(request).unwrap();
    let opened = service.initialize(request, &Principal::new(user), None).await?;
    Ok(opened.0.id)
}

/// Attack: remote | a client opens connections without end | it has half of the maximum, and the
/// others have the rest | Isolation
#[tokio::test]
async fn a_client_leaves_half_of_the_connections_for_the_others() {
    let service = service(4);
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(open(&service, "ann").await.unwrap());
    }
    let error = open(&service, "ann").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::TransportError);
    assert!(error.message.contains("too many connections"), "{error}");
    open(&service, "ben").await.unwrap();
    open(&service, "ben").await.unwrap();
    assert_eq!(open(&service, "cid").await.unwrap_err().code, ErrorCode::TransportError);
}

#[tokio::test]
async fn an_ended_connection_makes_room_after_its_time() {
    tokio::time::pause();
    let service = service(1);
    let user = Principal::new("ann");
    let id = open(&service, "ann").await.unwrap();
    service.advance(id, &user, LifecycleMessage::Shutdown).await.unwrap();
    service.advance(id, &user, LifecycleMessage::Exit).await.unwrap();
    assert!(open(&service, "ann").await.is_err(), "the store knows the ended connection");
    tokio::time::advance(std::time::Duration::from_secs(30)).await;
    open(&service, "ann").await.unwrap();
}
