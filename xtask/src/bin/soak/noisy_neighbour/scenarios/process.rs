//! Faults of a server's process.

use serde_json::json;

use super::FaultScenario;

/// Scenarios that cost the machine more than the host: each start runs a program, and the host
/// terminates each process tree.
pub(super) fn scenarios() -> Vec<FaultScenario> {
    vec![
        FaultScenario::on_starts(70, &["--exit-at-start=3"]),
        FaultScenario::on_calls_with_restart(71, &["--crash-after=1"]),
        FaultScenario::on_calls_with_restart(72, &["--crash-signal"]),
        FaultScenario::on_calls_with_restart(73, &["--close-stdout"]),
        FaultScenario::on_calls_with_restart(74, &["--exit-while-grandchild"]),
        FaultScenario::on_starts(75, &["--ignore-eof", "--ignore-sigterm"]),
        FaultScenario::on_starts(76, &["--grandchild-ignores-sigterm"]),
        FaultScenario::on_starts(77, &["--own-session"]),
        FaultScenario::on_starts(78, &["--daemon"]),
        FaultScenario::on_starts(79, &["--fork-loop=100"]),
        FaultScenario::on_calls_with_restart(80, &["--alloc=33554432"])
            .with_config_key("limits", json!({"memory": "512 MiB"})),
        FaultScenario::on_calls(81, &["--spin"]),
        FaultScenario::on_calls_with_restart(82, &["--stop-self"]).with_timeout_millis(50),
        FaultScenario::on_starts(83, &["--zombies=100"]),
    ]
}
