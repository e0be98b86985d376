//! Tests of pending settings between approval and restart.

use crate::own_files::OwnFiles;
use crate::server::ServerSettings;
use crate::server::endpoint_resolution;
use std::path::Path;

use serde_json::json;

use super::plan::may_need_approval;
use super::*;

fn config(level: &str) -> Config {
    let file = json!({"servers": {"one": {"command": "/bin/sh", "env": {"LEVEL": level}}}});
    Config::from_value(&file, "mcp.json", Path::new("/"), &Environment::default()).unwrap()
}

fn settings(config: &Config) -> ServerSettings {
    let (environment, connectors) = (Environment::default(), Connectors::default());
    let own_files = OwnFiles::default();
    let servers = config.servers.values();
    let prepared = endpoint_resolution::prepare(servers, &environment, &connectors, &own_files);
    prepared.unwrap().remove(0)
}

#[cfg(unix)]
#[test]
fn settings_still_wait_when_a_restart_takes_up_others_while_a_reload_decides() {
    let (first, second) = (config("1"), config("2"));
    let server = Server::new(settings(&first));
    server.apply_config(&second.servers["one"], Some(settings(&second)));
    // The file has the settings of the running server again, so nothing is pending.
    let back = &first.servers["one"];
    let start = may_need_approval(&server, back).then(|| settings(&first));
    server.apply_pending();
    let change = server.apply_config(back, start);
    assert_eq!(change.deferred, ["env"]);
    let waits = server
        .status()
        .next_start
        .pending_settings
        .as_ref()
        .map(|pending| pending.settings.config.clone());
    assert_eq!(waits.as_deref(), Some(back));

    server.apply_pending();
    assert!(!may_need_approval(&server, back), "nothing waits and nothing is different");
}
