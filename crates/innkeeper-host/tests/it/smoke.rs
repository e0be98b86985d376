//! The whole way once: start, catalog, call, shutdown.

use innkeeper_host::{Config, Environment, Host, Supervisor};
use innkeeper_testkit as fixture;
use innkeeper_testkit::Nonce;
use serde_json::json;

#[tokio::test]
async fn a_server_is_started_called_and_gone() {
    let nonce = Nonce::new();
    let file = fixture::mcp_json([
        fixture::fx("one").nonce(&nonce),
        fixture::fx("two").with("--era", "modern").nonce(&nonce),
    ]);
    let environment = Environment::of_process();
    let config =
        Config::from_value(&file, "mcp.json", std::path::Path::new("/"), &environment).unwrap();
    let host = Host::builder(config)
        .supervisor(Supervisor::executable(env!("CARGO_BIN_EXE_innkeeper-shim")))
        .start()
        .await
        .unwrap();
    println!("{}", serde_json::to_string_pretty(&*host.catalog()).unwrap());
    for server in ["one", "two"] {
        let result =
            host.call_tool(&format!("{server}.echo"), json!({"message": "hi"})).await.unwrap();
        println!("{}", result.raw().get());
    }
    println!("{:?}", host.status());
    println!("{:?}", host.metrics());
    let report = host.shutdown().await;
    println!("{report:?}");
    assert!(report.is_clean(), "{report:?}");
    innkeeper_testkit::wait_gone(&nonce, std::time::Duration::from_secs(1)).unwrap();
}
