//! What waits for a start, whatever happens between the decision and its being wanted.

use std::path::Path;

use serde_json::json;

use super::*;

fn config(level: &str) -> Config {
    let file = json!({"servers": {"one": {"command": "/bin/sh", "env": {"LEVEL": level}}}});
    Config::from_value(&file, "mcp.json", Path::new("/"), &Environment::default()).unwrap()
}

fn settings(config: &Config) -> Settings {
    let prepared = start::prepare(config.servers.values(), &Environment::default());
    prepared.unwrap().remove(0)
}

#[cfg(unix)]
#[test]
fn settings_still_wait_when_a_restart_takes_up_others_while_a_reload_decides() {
    let (first, second) = (config("1"), config("2"));
    let server = Server::new(settings(&first));
    server.want(&second.servers["one"], Some(settings(&second)));
    // The file says again what the server runs with: nothing would wait any more.
    let back = &first.servers["one"];
    let start = may_start(&server, back).then(|| settings(&first));
    server.take_up_pending();
    let change = server.want(back, start);
    assert_eq!(change.later, ["env"]);
    let waits = server.status().pending.as_ref().map(|pending| pending.settings.config.clone());
    assert_eq!(waits.as_deref(), Some(back));

    server.take_up_pending();
    assert!(!may_start(&server, back), "nothing waits and nothing is different");
}
