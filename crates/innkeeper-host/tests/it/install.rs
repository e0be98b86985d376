//! Servers behind package runners: fetching a package has a time of its own.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::Duration;

use innkeeper_host::error::{Phase, StartReason};
use innkeeper_host::{Event, StartError};
use innkeeper_testkit::{Fixture, fx_program};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::setup::{Scene, builder, until_told};

/// A package runner that fetches until something is written to the pipe, then runs the server as
/// its child, as `npx` does.
struct Runner {
    program: PathBuf,
    pipe: PathBuf,
}

impl Runner {
    fn new(scene: &Scene) -> Self {
        let (program, pipe) = (scene.path("npx"), scene.path("registry"));
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        let [fetched, server] = [&pipe, &fx_program()].map(|path| path.display().to_string());
        let script = format!("#!/bin/sh\nread -r package < '{fetched}'\n'{server}' \"$@\"\n");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { program, pipe }
    }

    /// One that becomes the server, with words of its own, as `pipx run` does.
    fn that_becomes_it(scene: &Scene) -> Self {
        let runner = Self::new(scene);
        let script = fs::read_to_string(&runner.program).unwrap();
        let script = script.replace("\n'", "\nexec '").replace("\"$@\"", "\"$@\" --no-prompts");
        fs::write(&runner.program, script).unwrap();
        runner
    }

    fn run(&self, server: Fixture) -> Fixture {
        server.key("command", self.program.to_str().unwrap())
    }

    fn fetched(&self) {
        // Opened for both, which does not wait for the runner.
        let pipe = fs::OpenOptions::new().read(true).write(true).open(&self.pipe);
        pipe.unwrap().write_all(b"server@1.0.0\n").unwrap();
    }
}

/// A host whose one server is fetched for longer than its own start may take, and comes up.
async fn comes_up_once_it_is_fetched(scene: &Scene, runner: &Runner, settings: &Value) {
    let server = runner.run(scene.fx("one")).key("initTimeout", 1);
    let host = builder(scene.config_with(settings, [server]));
    let mut events = host.events();
    let fetching = async {
        until_told(&mut events, |event| matches!(event, Event::Installing { .. })).await;
        sleep(Duration::from_millis(1100)).await;
        assert!(scene.journal().entries.is_empty());
        runner.fetched();
    };
    let (host, ()) = tokio::join!(host.start(), fetching);
    let host = host.unwrap();
    host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap();
    assert!(host.shutdown().await.is_clean());
    scene.assert_gone().await;
}

#[tokio::test]
async fn the_time_a_package_takes_to_install_is_not_taken_from_the_start_of_its_server() {
    let scene = Scene::new();
    comes_up_once_it_is_fetched(&scene, &Runner::new(&scene), &json!({})).await;
}

#[tokio::test]
async fn a_package_runner_that_becomes_the_server_has_installed_it() {
    let scene = Scene::new();
    let runner = Runner::that_becomes_it(&scene);
    comes_up_once_it_is_fetched(&scene, &runner, &json!({"installTimeout": 10})).await;
}

#[tokio::test]
async fn a_package_that_is_never_fetched_fails_at_the_limit_for_installing() {
    let scene = Scene::new();
    let runner = Runner::new(&scene);
    let server = runner.run(scene.fx("one")).key("initTimeout", 0.1);
    let host = builder(scene.config_with(&json!({"installTimeout": 0.5}), [server]));
    let Err(StartError::Servers(failures)) = host.start().await else { panic!("it has started") };
    assert_eq!(failures[0].phase, Phase::Install);
    let StartReason::TimedOut(limit) = failures[0].reason else { panic!("{failures:?}") };
    assert_eq!(limit, Duration::from_millis(500));
    scene.assert_gone().await;
}

#[tokio::test]
async fn an_installation_does_not_outlast_the_limit_for_all_servers() {
    let scene = Scene::new();
    let runner = Runner::new(&scene);
    let server = runner.run(scene.fx("one"));
    let host = builder(scene.config_with(&json!({"startTimeout": 0.5}), [server]));
    let Err(StartError::Servers(failures)) = host.start().await else { panic!("it has started") };
    assert_eq!(failures[0].phase, Phase::Install);
    let StartReason::StartLimit(limit) = failures[0].reason else { panic!("{failures:?}") };
    assert_eq!(limit, Duration::from_millis(500));
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_package_runner_that_fails_is_told_with_its_exit_and_its_words() {
    let scene = Scene::new();
    let program = scene.path("npx");
    symlink(fx_program(), &program).unwrap();
    let server = scene.fx("one").with("--exit-at-start", 254).with("--stderr", "404 not found");
    let server = server.key("command", program.to_str().unwrap()).key("initTimeout", 0.5);
    let error = scene.start([server]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "server `one` failed while its launcher was installing it: \
         its process ended with exit code 254\n    | 404 not found"
    );
}
