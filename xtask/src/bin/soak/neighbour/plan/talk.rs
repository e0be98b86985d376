//! Faults in what a server says: bytes, answers, floods, lists, handshakes.

use std::path::Path;

use serde_json::json;

use super::super::offers;
use super::Play;

/// Bytes of arguments that fill every buffer on the way to a server that does not read.
const ARGUMENTS: usize = 1 << 20;

/// Bytes and framing, correlation, flow control.
pub(super) fn plays() -> Vec<Play> {
    let malformed = |number, kind: &str| Play::calls(number, &[&format!("--malformed={kind}")]);
    vec![
        Play::calls(1, &["--noise=900"]),
        Play::calls(2, &["--stall=100"]).within(50),
        Play::calls(3, &["--huge=100000000"]).longer(3),
        Play::calls(4, &["--endless-line=67108864"]),
        malformed(5, "notutf8"),
        malformed(6, "nul"),
        Play::calls(7, &["--bom", "--crlf"]),
        malformed(8, "pretty"),
        malformed(9, "batch"),
        malformed(10, "deep"),
        malformed(11, "bignumber"),
        malformed(12, "duplicatekey"),
        malformed(13, "wrongcase").within(50),
        Play::calls(14, &["--chunk=1", "--chunk-delay=1"]).within(50),
        malformed(15, "nobody").within(50),
        malformed(16, "nojsonrpc"),
        malformed(17, "both"),
        malformed(18, "neither"),
        malformed(19, "resultnull"),
        malformed(20, "wrongtypes"),
        Play::calls(21, &["--bad-structured"]).of("add", json!({"a": 1, "b": 2})),
        Play::calls(22, &["--unknown-id"]),
        Play::calls(23, &["--dup-reply"]),
        malformed(24, "stringid"),
        Play::calls(25, &["--slow=20", "--ignore-cancel"]).within(10),
        Play::calls(26, &["--slow=20"]).within(10),
        Play::calls(28, &["--same-request-id", "--ask-roots"]),
        Play::calls(29, &["--cancel-ours"]),
        Play::calls(30, &["--progress=1000", "--bad-progress"]).beside(&["--progress=1000"]),
        Play::once(32, &["--stop-reading"]).of("echo", json!({"message": "x".repeat(ARGUMENTS)})),
        Play::calls(34, &["--log-flood=200000"]).longer(3),
        Play::starts(35, &["--stderr-flood=52428800"]).longer(3),
        Play::starts(36, &["--stderr-endless=52428800"]).longer(3),
        Play::starts(37, &["--odd-names", "--stderr=\u{1b}[31m\u{202e}"]),
        Play::calls(38, &["--list-changed", "--list-changed-burst=20000"])
            .of("grow", json!({"what": "tools"}))
            .beside(&["--list-changed"]),
        Play::calls(39, &["--list-changed", "--relist-loop"])
            .of("grow", json!({"what": "tools"}))
            .beside(&["--list-changed"]),
        Play::calls(40, &["--ask-sampling", "--ask-count=2000"]).beside(&["--ask-sampling"]),
        Play::calls(41, &["--era=modern", "--ask-sampling", "--rounds=1000"])
            .beside(&["--era=modern", "--ask-sampling"]),
        Play::calls(42, &["--ask-elicit", "--ask-count=2000"]).beside(&["--ask-elicit"]),
        Play::starts(43, &["--ping-client", "--ping-count=20000"]).longer(3),
        Play::calls(44, &["--era=modern", "--ask-sampling", "--state-bytes=10000000"])
            .beside(&["--era=modern", "--ask-sampling"]),
    ]
}

/// Lists and schemas, handshakes.
pub(super) fn lists(folder: &Path) -> Vec<Play> {
    let tools = |number, name: &str| {
        let file = offers::path(folder, name);
        Play::starts(number, &[&format!("--tools={}", file.display())])
    };
    vec![
        Play::starts(45, &["--same-cursor"]),
        Play::starts(46, &["--endless-cursor"]),
        Play::starts(47, &["--many-tools=100000"]).longer(3),
        Play::starts(48, &["--dup-tool"]),
        Play::starts(49, &["--bad-tool"]),
        Play::starts(50, &["--odd-names"]),
        tools(51, "alike"),
        tools(52, "hidden"),
        tools(53, "recursive"),
        tools(54, "fetches"),
        tools(55, "doubles"),
        tools(56, "patterns").detail("read"),
        tools(56, "patterns")
            .only_called()
            .detail("called")
            .of("echo", json!({"message": format!("{}!", "a".repeat(ARGUMENTS))})),
        tools(57, "wide").longer(3),
        Play::starts(58, &["--hang-lists"]).key("initTimeout", 0.2),
        Play::starts(59, &["--declares-but-32601"]),
        Play::calls(61, &["--server-error=-32602"]),
        Play::starts(64, &["--silent-discover", "--hang-init"]).key("initTimeout", 0.2),
        Play::starts(65, &["--revision=2099-12-31"]),
        Play::starts(66, &["--discover-error=-32099"]),
        Play::starts(67, &["--init-twice"]),
        Play::starts(68, &["--early-request"]),
        Play::starts(69, &["--server-name=well"]),
    ]
}
