//! Servers behind package runners: installation has its own timeout.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::Duration;

use innkeeper_host::error::{StartFailureReason, StartPhase};
use innkeeper_host::{HostEvent, StartError};
use innkeeper_testkit::{Fixture, fixture_program};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::setup::{TestEnv, builder, drain_events, wait_for_event};

/// A package runner that waits for data from the pipe in place of a download, then runs the server
/// as a child process, as `npx` does.
struct PackageRunner {
    program: PathBuf,
    pipe: PathBuf,
}

impl PackageRunner {
    fn new(test_env: &TestEnv) -> Self {
        let (program, pipe) = (test_env.path("npx"), test_env.path("registry"));
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        let [fetched, server] = [&pipe, &fixture_program()].map(|path| path.display().to_string());
        let script = format!(
            "#!/bin/sh\necho 'Downloading server (1.0MiB)' >&2\nread -r package < '{fetched}'\n\
             'uname' | cat >/dev/null\n'{server}' \"$@\"\n"
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { program, pipe }
    }

    /// A package runner that replaces itself with the server and adds an argument, as `pipx run`
    /// does.
    fn new_exec(test_env: &TestEnv) -> Self {
        let runner = Self::new(test_env);
        let script = fs::read_to_string(&runner.program).unwrap();
        let script = script.replace("\n'/", "\nexec '/").replace("\"$@\"", "\"$@\" --no-prompts");
        fs::write(&runner.program, script).unwrap();
        runner
    }

    fn wrap(&self, server: Fixture) -> Fixture {
        server.config_key("command", self.program.to_str().unwrap())
    }

    fn finish_fetch(&self) {
        // Opening the pipe for reading and writing does not wait for the runner.
        let pipe = fs::OpenOptions::new().read(true).write(true).open(&self.pipe);
        pipe.unwrap().write_all(b"server@1.0.0\n").unwrap();
    }
}

/// Checks that a host starts although the installation of its server takes longer than
/// `initTimeout`.
async fn assert_starts_after_fetch(test_env: &TestEnv, runner: &PackageRunner, settings: &Value) {
    let server = runner.wrap(test_env.fixture("one")).config_key("initTimeout", 1);
    let host = builder(test_env.config_with(settings, [server]));
    let mut events = host.events();
    let fetching = async {
        wait_for_event(&mut events, |event| matches!(event, HostEvent::Installing { .. })).await;
        sleep(Duration::from_millis(1100)).await;
        assert!(test_env.journal().entries.is_empty());
        runner.finish_fetch();
    };
    let (host, ()) = tokio::join!(host.start(), fetching);
    let host = host.unwrap();
    host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap();
    assert!(host.shutdown().await.is_clean());
    test_env.assert_gone().await;
}

#[tokio::test]
async fn the_time_a_package_takes_to_install_is_not_taken_from_the_start_of_its_server() {
    let test_env = TestEnv::new();
    assert_starts_after_fetch(&test_env, &PackageRunner::new(&test_env), &json!({})).await;
}

#[tokio::test]
async fn a_package_runner_that_becomes_the_server_has_installed_it() {
    let test_env = TestEnv::new();
    let runner = PackageRunner::new_exec(&test_env);
    assert_starts_after_fetch(&test_env, &runner, &json!({"installTimeout": 10})).await;
}

#[tokio::test]
async fn a_package_that_is_never_fetched_fails_at_the_limit_for_installing() {
    let test_env = TestEnv::new();
    let runner = PackageRunner::new(&test_env);
    let server = runner.wrap(test_env.fixture("one")).config_key("initTimeout", 0.1);
    let host = builder(test_env.config_with(&json!({"installTimeout": 0.5}), [server]));
    let Err(StartError::Servers(failures)) = host.start().await else { panic!("it has started") };
    assert_eq!(failures[0].phase, StartPhase::Install);
    let StartFailureReason::TimedOut(limit) = failures[0].reason else { panic!("{failures:?}") };
    assert_eq!(limit, Duration::from_millis(500));
    test_env.assert_gone().await;
}

#[tokio::test]
async fn the_limit_for_all_servers_does_not_cut_an_installation() {
    let test_env = TestEnv::new();
    let runner = PackageRunner::new(&test_env);
    assert_starts_after_fetch(&test_env, &runner, &json!({"startTimeout": 1})).await;
}

#[tokio::test]
async fn an_install_script_is_not_taken_for_the_server() {
    let test_env = TestEnv::new();
    let runner = PackageRunner::new(&test_env);
    // The script has pipes of its own, as the scripts of `npm` have.
    let script = fs::read_to_string(&runner.program).unwrap();
    let read = format!("read -r package < '{}'", runner.pipe.display());
    assert!(script.contains(&read), "{script}");
    let script = script.replace(&read, &format!(": | sh -c \"{read}; exit\" | cat >/dev/null"));
    fs::write(&runner.program, script).unwrap();
    assert_starts_after_fetch(&test_env, &runner, &json!({})).await;
}

#[tokio::test]
async fn a_runner_that_installs_nothing_publishes_no_installation() {
    let test_env = TestEnv::new();
    let runner = PackageRunner::new(&test_env);
    let script = format!("#!/bin/sh\n'{}' \"$@\"\n", fixture_program().display());
    fs::write(&runner.program, script).unwrap();
    let host = builder(test_env.config([runner.wrap(test_env.fixture("one"))]));
    let mut events = host.events();
    let host = host.start().await.unwrap();
    let events = drain_events(&mut events);
    assert!(
        !events.iter().any(|event| matches!(event, HostEvent::Installing { .. })),
        "{events:?}"
    );
    let programs: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            HostEvent::Launching { program, .. } => program.as_deref(),
            _ => None,
        })
        .collect();
    assert_eq!(programs, ["npx"]);
    host.shutdown().await;
}

#[tokio::test]
async fn a_package_runner_that_fails_is_reported_with_its_exit_and_stderr() {
    let test_env = TestEnv::new();
    let program = test_env.path("npx");
    symlink(fixture_program(), &program).unwrap();
    let server =
        test_env.fixture("one").with("--exit-at-start", 254).with("--stderr", "404 not found");
    let server =
        server.config_key("command", program.to_str().unwrap()).config_key("initTimeout", 0.5);
    let error = test_env.start([server]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "server `one` failed during installation: \
         process ended with exit code 254\n    | 404 not found"
    );
}
