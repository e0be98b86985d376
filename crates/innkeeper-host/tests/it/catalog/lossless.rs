//! The catalog keeps definitions exactly as the servers sent them.

use innkeeper_host::Host;

use crate::setup::{TestEnv, builder};
use crate::shell_server::ShellServer;

const TOOL: &str = concat!(
    r#"{ "zeta":1, "inputSchema":{"type":"object","x-order":["b","a"],"properties":{"b":{},"a":{}},"#,
    r#""maximum":123456789012345678901234567890}, "name":"od\u0064" ,"cost":1.10e-7,"alpha":"é\u00e9\/","#,
    r#""annotations":{"vendor":[true,null,{}]},"title":null}"#,
);

const INFO: &str =
    r#"{"name":"sh","version":"1", "build":98765432109876543210987654321,"b":1,"a":2}"#;

const CAPABILITIES: &str = concat!(
    r#"{ "tools":{"listChanged" :false}, "exp\u0065rimental":{"x":1.10e-7},"extensions":{"v/x":{}},"#,
    r#""tools2":[1 ,123456789012345678901234567890]}"#,
);

async fn catalog_json() -> (Host, String) {
    let test_env = TestEnv::new();
    let tools = format!(r#"{{"tools":[{TOOL}]}}"#);
    let initialized = format!(
        r#"{{"protocolVersion":"2025-06-18","capabilities":{CAPABILITIES},"serverInfo":{INFO}}}"#
    );
    let shell = ShellServer {
        tools_result: &tools,
        initialize_result: &initialized,
        ..ShellServer::default()
    };
    let host = builder(test_env.config_from(&shell.config_json())).start().await.unwrap();
    let text = serde_json::to_string(&*host.catalog()).unwrap();
    (host, text)
}

#[tokio::test]
async fn a_tool_is_shown_byte_for_byte() {
    let (host, catalog) = catalog_json().await;
    assert!(catalog.contains(&format!(r#""tools":[{TOOL}]"#)), "{catalog}");
    let snapshot = host.catalog();
    let tool = &snapshot.server("sh").unwrap().listing().unwrap().tools[0];
    assert_eq!(tool.raw.get(), TOOL);
    assert_eq!(tool.view.name, "odd");
    host.call_tool("sh.odd", ()).await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn what_a_server_says_of_itself_is_shown_byte_for_byte() {
    let (host, catalog) = catalog_json().await;
    assert!(catalog.contains(&format!(r#""serverInfo":{INFO}"#)), "{catalog}");
    let snapshot = host.catalog();
    let server = snapshot.server("sh").unwrap();
    assert_eq!(server.server_info().unwrap().get(), INFO);
    assert_eq!(server.capabilities().unwrap().get(), CAPABILITIES);
    host.shutdown().await;
}
