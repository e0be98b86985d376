//! Faults of a server's process.

use serde_json::json;

use super::Play;

/// They cost the machine more than the host: each start is a program, each tree has to be ended.
pub(super) fn plays() -> Vec<Play> {
    vec![
        Play::starts(70, &["--exit-at-start=3"]),
        Play::once(71, &["--crash-after=1"]),
        Play::once(72, &["--crash-signal"]),
        Play::once(73, &["--close-stdout"]),
        Play::once(74, &["--exit-while-grandchild"]),
        Play::starts(75, &["--ignore-eof", "--ignore-sigterm"]),
        Play::starts(76, &["--grandchild-ignores-sigterm"]),
        Play::starts(77, &["--own-session"]),
        Play::starts(78, &["--daemon"]),
        Play::starts(79, &["--fork-loop=100"]),
        Play::once(80, &["--alloc=33554432"]).key("limits", json!({"memory": "512 MiB"})),
        Play::calls(81, &["--spin"]),
        Play::once(82, &["--stop-self"]).within(50),
        Play::starts(83, &["--zombies=100"]),
    ]
}
