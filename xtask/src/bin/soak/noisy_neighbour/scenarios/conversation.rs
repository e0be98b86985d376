//! Faults in a server's messages: bytes, responses, floods, lists, handshakes.

use std::path::Path;

use serde_json::json;

use super::super::hostile_tool_lists;
use super::FaultScenario;

/// Length of arguments that fill every buffer between the host and a server that does not read, in
/// bytes.
const ARGUMENT_BYTES: usize = 1 << 20;

/// Scenarios of bytes and framing, correlation, flow control.
pub(super) fn scenarios() -> Vec<FaultScenario> {
    let malformed =
        |number, kind: &str| FaultScenario::on_calls(number, &[&format!("--malformed={kind}")]);
    vec![
        FaultScenario::on_calls(1, &["--noise=900"]),
        FaultScenario::on_calls(2, &["--stall=100"]).with_timeout_millis(50),
        FaultScenario::on_calls(3, &["--huge=100000000"]).with_call_multiplier(3),
        FaultScenario::on_calls(4, &["--endless-line=67108864"]),
        malformed(5, "notutf8"),
        malformed(6, "nul"),
        FaultScenario::on_calls(7, &["--bom", "--crlf"]),
        malformed(8, "pretty"),
        malformed(9, "batch"),
        malformed(10, "deep"),
        malformed(11, "bignumber"),
        malformed(12, "duplicatekey"),
        malformed(13, "wrongcase").with_timeout_millis(50),
        FaultScenario::on_calls(14, &["--chunk=1", "--chunk-delay=1"]).with_timeout_millis(50),
        malformed(15, "nobody").with_timeout_millis(50),
        malformed(16, "nojsonrpc"),
        malformed(17, "both"),
        malformed(18, "neither"),
        malformed(19, "resultnull"),
        malformed(20, "wrongtypes"),
        FaultScenario::on_calls(21, &["--bad-structured"])
            .with_call("add", json!({"a": 1, "b": 2})),
        FaultScenario::on_calls(22, &["--unknown-id"]),
        FaultScenario::on_calls(23, &["--dup-reply"]),
        malformed(24, "stringid"),
        FaultScenario::on_calls(25, &["--slow=20", "--ignore-cancel"]).with_timeout_millis(10),
        FaultScenario::on_calls(26, &["--slow=20"]).with_timeout_millis(10),
        FaultScenario::on_calls(28, &["--same-request-id", "--ask-roots"]),
        FaultScenario::on_calls(29, &["--cancel-ours"]),
        FaultScenario::on_calls(30, &["--progress=1000", "--bad-progress"])
            .with_healthy_switches(&["--progress=1000"]),
        FaultScenario::on_calls_with_restart(32, &["--stop-reading"])
            .with_call("echo", json!({"message": "x".repeat(ARGUMENT_BYTES)})),
        FaultScenario::on_calls(34, &["--log-flood=200000"]).with_call_multiplier(3),
        FaultScenario::on_starts(35, &["--stderr-flood=52428800"]).with_call_multiplier(3),
        FaultScenario::on_starts(36, &["--stderr-endless=52428800"]).with_call_multiplier(3),
        FaultScenario::on_starts(37, &["--odd-names", "--stderr=\u{1b}[31m\u{202e}"]),
        FaultScenario::on_calls(38, &["--list-changed", "--list-changed-burst=20000"])
            .with_call("grow", json!({"what": "tools"}))
            .with_healthy_switches(&["--list-changed"]),
        FaultScenario::on_calls(39, &["--list-changed", "--relist-loop"])
            .with_call("grow", json!({"what": "tools"}))
            .with_healthy_switches(&["--list-changed"]),
        FaultScenario::on_calls(40, &["--ask-sampling", "--ask-count=2000"])
            .with_healthy_switches(&["--ask-sampling"]),
        FaultScenario::on_calls(41, &["--era=modern", "--ask-sampling", "--rounds=1000"])
            .with_healthy_switches(&["--era=modern", "--ask-sampling"]),
        FaultScenario::on_calls(42, &["--ask-elicit", "--ask-count=2000"])
            .with_healthy_switches(&["--ask-elicit"]),
        FaultScenario::on_starts(43, &["--ping-client", "--ping-count=20000"])
            .with_call_multiplier(3),
        FaultScenario::on_calls(44, &["--era=modern", "--ask-sampling", "--state-bytes=10000000"])
            .with_healthy_switches(&["--era=modern", "--ask-sampling"]),
    ]
}

/// Scenarios of lists and schemas, handshakes.
pub(super) fn list_scenarios(dir: &Path) -> Vec<FaultScenario> {
    let tools = |number, name: &str| {
        let file = hostile_tool_lists::tool_list_path(dir, name);
        FaultScenario::on_starts(number, &[&format!("--tools={}", file.display())])
    };
    vec![
        FaultScenario::on_starts(45, &["--same-cursor"]),
        FaultScenario::on_starts(46, &["--endless-cursor"]),
        FaultScenario::on_starts(47, &["--many-tools=100000"]).with_call_multiplier(3),
        FaultScenario::on_starts(48, &["--dup-tool"]),
        FaultScenario::on_starts(49, &["--bad-tool"]),
        FaultScenario::on_starts(50, &["--odd-names"]),
        tools(51, "alike"),
        tools(52, "hidden"),
        tools(53, "recursive"),
        tools(54, "fetches"),
        tools(55, "doubles"),
        tools(56, "patterns").with_detail("read"),
        tools(56, "patterns")
            .calls_only()
            .with_detail("called")
            .with_call("echo", json!({"message": format!("{}!", "a".repeat(ARGUMENT_BYTES))})),
        tools(57, "wide").with_call_multiplier(3),
        FaultScenario::on_starts(58, &["--hang-lists"]).with_config_key("initTimeout", 0.2),
        FaultScenario::on_starts(59, &["--declares-but-32601"]),
        FaultScenario::on_calls(61, &["--server-error=-32602"]),
        FaultScenario::on_starts(64, &["--silent-discover", "--hang-init"])
            .with_config_key("initTimeout", 0.2),
        FaultScenario::on_starts(65, &["--revision=2099-12-31"]),
        FaultScenario::on_starts(66, &["--discover-error=-32099"]),
        FaultScenario::on_starts(67, &["--init-twice"]),
        FaultScenario::on_starts(68, &["--early-request"]),
        FaultScenario::on_starts(69, &["--server-name=well"]),
    ]
}
