//! Tests of server starts and their errors.

use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::task::{Context, Waker};
use std::time::Duration;

use super::super::{LaunchProbe, ProcessContainment, SpawnError, spawn};
use super::*;

/// Writes a file with these permissions into a new directory.
fn write_file(content: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secret-place");
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    (dir, path)
}

async fn spawn_error(launch: &ProcessSpec) -> SpawnError {
    let by_shim = spawn(launch, &shim(), None).await.unwrap_err();
    for other in [fallback_shim(), Supervisor::Group] {
        let error = spawn(launch, &other, None).await.unwrap_err();
        assert_eq!(by_shim.to_string(), error.to_string());
    }
    by_shim
}

/// Attack: processes | arguments with shell syntax, quotes, line ends and escape codes | the server
/// receives each argument unchanged; no shell runs | Foreign text stays text
/// Proves: TR2.1, TR11.5
#[tokio::test]
async fn arguments_reach_the_server_literally() {
    let hostile =
        ["; rm -rf \"$HOME\"", "$(id)", "`id`", "a  b\n\t'\"\\", "--", "*", "ä\u{1b}[2J", ""];
    for supervisor in [shim(), fallback_shim(), Supervisor::Group] {
        let tag = ProcessTag::new();
        let mut launch = tag.program("/usr/bin/printf", &["<%s>"]);
        launch.args.extend(hostile.iter().map(OsString::from));
        let (_process, mut pipes) = spawn(&launch, &supervisor, None).await.unwrap();
        let expected: String = hostile.iter().map(|argument| format!("<{argument}>")).collect();
        assert_eq!(read_output(&mut pipes).await, expected);
    }
}

#[tokio::test]
async fn the_server_gets_the_given_environment_and_directory_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    for supervisor in [shim(), fallback_shim(), Supervisor::Group] {
        let tag = ProcessTag::new();
        let mut launch = tag.program("/usr/bin/env", &["--", "sh", "-c", "pwd -P; env -0"]);
        launch.cwd = Some(dir.path().to_owned());
        let (_process, mut pipes) = spawn(&launch, &supervisor, None).await.unwrap();
        let output = read_output(&mut pipes).await;
        let (cwd, environment) = output.split_once('\n').unwrap();
        assert_eq!(Path::new(cwd), dir.path().canonicalize().unwrap());
        let mut names: Vec<_> = environment
            .split_terminator('\0')
            .map(|pair| pair.split('=').next().unwrap())
            .collect();
        names.sort_unstable();
        // The shell adds these variables itself.
        names.retain(|name| !["_", "PWD", "OLDPWD", "SHLVL"].contains(name));
        // This variable identifies the tree of a killed supervisor.
        names.retain(|name| supervisor == Supervisor::Group || *name != "INNKEEPER_TREE");
        assert_eq!(names, [TAG_VARIABLE, "PATH"]);
    }
}

/// Attack: secrets | the application leaves a file descriptor inheritable | the server has no such
/// descriptor | Secrets stay with their owner
#[tokio::test]
async fn a_file_that_the_application_left_open_does_not_reach_the_server() {
    let file = tempfile::NamedTempFile::new().unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let check = async || {
        let tag = ProcessTag::new();
        let (_process, mut pipes) = start(&tag.script("ls -l /proc/$$/fd; echo end")).await;
        let listing = read_output(&mut pipes).await;
        assert!(listing.ends_with("end\n") && listing.contains("pipe:"), "{listing}");
        assert!(!listing.contains(file.path().to_str().unwrap()), "{listing}");
    };
    check().await;
    // Like a kernel before Linux 5.9.
    refuse_call(libc::SYS_close_range, libc::ENOSYS);
    check().await;
}

#[tokio::test]
async fn a_host_that_ignores_signals_does_not_make_its_servers_ignore_them() {
    let (_dir, embedded) = super::hostile::renamed_shim();
    for supervisor in [embedded, fallback_shim()] {
        let Supervisor::Shim { program, args } = supervisor else { unreachable!() };
        let ignoring = "trap '' HUP INT TERM CHLD PIPE QUIT XFSZ; exec \"$0\" \"$@\"";
        let lead = [OsString::from("-c"), ignoring.into(), program.into()];
        let args = lead.into_iter().chain(args).collect();
        let supervisor = Supervisor::Shim { program: "/bin/sh".into(), args };
        let tag = ProcessTag::new();
        // A shell changes its own signals.
        let launch = tag.program("/bin/grep", &["-E", "^Sig(Blk|Ign)", "/proc/self/status"]);
        let (mut process, mut pipes) = spawn(&launch, &supervisor, None).await.unwrap();
        for name in ["SigBlk:\t", "SigIgn:\t"] {
            let line = read_line(&mut pipes).await;
            let set = u64::from_str_radix(line.strip_prefix(name).unwrap(), 16).unwrap();
            // The functions of libc that start a process ignore two of its own signals, 32 and 33.
            assert_eq!(set & 0x7fff_ffff, 0, "{line}");
        }
        assert_eq!(expect_exit(&mut process).await, ExitStatus::Code(0));
        expect_tree_gone(&mut process).await;
    }
}

#[test]
fn a_system_that_executes_no_file_in_memory_has_no_embedded_supervisor() {
    // Like the setting `vm.memfd_noexec=2`.
    refuse_call(libc::SYS_memfd_create, libc::EACCES);
    assert_eq!(Supervisor::embedded(), None);
    assert!(!matches!(Supervisor::available(), Supervisor::Embedded(_)));
}

#[tokio::test]
async fn a_launch_larger_than_the_socket_takes_at_once_arrives_whole() {
    let tag = ProcessTag::new();
    let mut launch = tag.program("/bin/sh", &["-c", "printf %s \"$*\" | wc -c", "sh"]);
    launch.args.extend((0..12).map(|_| OsString::from("x".repeat(100_000))));
    let (_process, mut pipes) = start(&launch).await;
    assert_eq!(read_line(&mut pipes).await.trim(), "1200011");
}

#[tokio::test]
async fn on_one_thread_a_server_starts_before_another_task_runs() {
    let dir = tempfile::tempdir().unwrap();
    let started = dir.path().join("started");
    let tag = ProcessTag::new();
    let mut launch = tag.script(": > \"$1\"");
    launch.args.push(started.clone().into());
    let supervisor = shim();
    let mut start = Box::pin(spawn(&launch, &supervisor, None));
    assert!(start.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    // This blocks the only thread of the runtime.
    eventually("the server to start", || started.exists());
    let (mut process, _pipes) = start.await.unwrap();
    assert_eq!(expect_exit(&mut process).await, ExitStatus::Code(0));
}

/// Proves: TR10.1, TR10.3
#[tokio::test]
async fn each_reason_for_not_starting_is_told_apart_without_showing_a_path() {
    let tag = ProcessTag::new();
    let (dir, not_a_program) = write_file("no magic here", 0o755);
    let (_dir, no_interpreter) = write_file("#!/nonexistent/interpreter\n", 0o755);
    let (_dir, not_executable) = write_file("#!/bin/sh\n", 0o644);
    let launch = |path: &Path| tag.program(path, &[]);

    let circular = dir.path().join("circular");
    std::os::unix::fs::symlink(&circular, &circular).unwrap();

    let error = spawn_error(&launch(Path::new("/nonexistent/secret-place"))).await;
    assert_eq!(error.to_string(), "command `the-command` was not found");
    let error = spawn_error(&launch(&no_interpreter)).await;
    assert!(matches!(error, SpawnError::NoInterpreter { .. }), "{error}");
    let error = spawn_error(&launch(&not_executable)).await;
    assert!(matches!(error, SpawnError::NotExecutable { .. }), "{error}");
    let error = spawn_error(&launch(dir.path())).await;
    assert!(matches!(error, SpawnError::NotExecutable { .. }), "{error}");
    let error = spawn_error(&launch(&not_a_program)).await;
    assert!(matches!(error, SpawnError::NotAProgram { .. }), "{error}");
    let error = spawn_error(&tag.program("/bin/true", &[&"x".repeat(1 << 20)])).await;
    assert!(matches!(error, SpawnError::TooLarge { .. }), "{error}");
    let error = spawn_error(&launch(&circular)).await;
    assert!(matches!(error, SpawnError::Other { .. }), "{error}");
    assert!(!error.to_string().contains("circular"), "{error}");
    let in_nowhere = ProcessSpec {
        cwd: Some("/nonexistent/secret-place".into()),
        ..launch(Path::new("/bin/true"))
    };
    let error = spawn_error(&in_nowhere).await;
    assert!(matches!(error, SpawnError::WorkingDirectory { .. }), "{error}");
    assert!(!error.to_string().contains("secret-place"), "{error}");
}

#[tokio::test]
async fn a_program_that_is_being_written_is_told_apart() {
    let tag = ProcessTag::new();
    let (_dir, path) = write_file("", 0o755);
    std::fs::copy("/bin/true", &path).unwrap();
    let _writer = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    let error = spawn_error(&tag.program(path, &[])).await;
    assert!(matches!(error, SpawnError::Busy { .. }), "{error}");
}

#[test]
fn this_library_contains_its_supervisor_where_it_says_so() {
    let expected = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    assert_eq!(Supervisor::embedded().is_some(), expected);
    assert!(!expected || matches!(Supervisor::available(), Supervisor::Embedded(_)));
}

#[tokio::test]
async fn a_server_outlives_the_value_of_its_embedded_supervisor() {
    let tag = ProcessTag::new();
    let supervisor = shim();
    let launch = tag.script("echo; exec sleep 600");
    let (mut process, mut pipes) = spawn(&launch, &supervisor, None).await.unwrap();
    drop(supervisor);
    read_line(&mut pipes).await;
    process.kill();
    assert_eq!(expect_exit(&mut process).await, ExitStatus::Signal(9));
    expect_tree_gone(&mut process).await;
}

#[tokio::test]
async fn a_supervisor_that_is_missing_or_is_none_fails_the_start() {
    let tag = ProcessTag::new();
    let launch = tag.script("sleep 600");
    for program in ["/nonexistent/secret-place", "/bin/true"] {
        let error = spawn(&launch, &Supervisor::executable(program), None).await.unwrap_err();
        assert!(matches!(error, SpawnError::Supervisor { .. }), "{error}");
        assert!(!error.to_string().contains(program), "{error}");
    }
    tag.wait_for_count(0);
}

/// Returns the file that the test below passes to this process, which is then a supervisor.
fn nested_report_path() -> Option<PathBuf> {
    let mut args = std::env::args_os().skip(1);
    (args.next()? == crate::shim::FLAG).then(|| args.next_back().unwrap().into())
}

#[tokio::test]
#[ignore = "an application that does not call `run_if_requested`, for the test below"]
async fn starts_a_server_in_a_supervisor() {
    let Some(path) = nested_report_path() else { return };
    let this_program = Supervisor::this_program().unwrap_err();
    let tag = ProcessTag::new();
    let started = spawn(&tag.script("sleep 600"), &fallback_shim(), None).await.unwrap_err();
    std::fs::write(path, format!("{this_program}\n{started}")).unwrap();
}

#[tokio::test]
async fn an_application_that_does_not_run_as_the_supervisor_does_not_start_itself_again() {
    let tag = ProcessTag::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    let test = "tests::launch::starts_a_server_in_a_supervisor";
    // The test runner ignores the flag and the path: no test has these names.
    let args = [crate::shim::FLAG, "--exact", test, "--ignored", file.path().to_str().unwrap()];
    let program = std::env::current_exe().unwrap();
    let supervisor = Supervisor::Shim { program, args: args.map(OsString::from).to_vec() };
    let error = spawn(&tag.script("sleep 600"), &supervisor, None).await.unwrap_err();
    assert!(matches!(error, SpawnError::Supervisor { .. }), "{error}");
    assert!(error.to_string().contains("must call `run_if_requested`"), "{error}");
    let report = || std::fs::read_to_string(file.path()).unwrap();
    eventually("the report of the nested application", || !report().is_empty());
    let report = report();
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(lines.len(), 2, "{report}");
    assert!(lines.iter().all(|line| line.contains("call `run_if_requested` first")), "{report}");
    tag.wait_for_count(0);
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_that_says_nothing_is_given_up_and_ended() {
    let tag = ProcessTag::new();
    let marked = format!("export {TAG_VARIABLE}={}; exec sleep 600", tag.as_str());
    let args = vec!["-c".into(), marked.into()];
    let silent = Supervisor::Shim { program: "/bin/sh".into(), args };
    let error = spawn(&tag.script("sleep 600"), &silent, None).await.unwrap_err();
    assert!(matches!(error, SpawnError::Supervisor { .. }), "{error}");
    tag.wait_for_count(0);
}

/// Proves: TR2.6
#[tokio::test]
async fn every_server_has_a_process_a_group_and_with_a_shim_a_session_of_its_own() {
    let tag = ProcessTag::new();
    let (first, _pipes) = start_ready(&tag.script("echo; exec sleep 600")).await;
    let (two, _pipes) = start_ready(&tag.script("echo; exec sleep 600")).await;
    assert_ne!(first.id(), two.id());
    // `getsid` panics if the session was created outside the container.
    let session = |pid| crate::tree::ProcessStat::read(pid).unwrap().session;
    let own_session = session(rustix::process::getpid());
    for process in [&first, &two] {
        let pid = Pid::from_raw(process.id().try_into().unwrap());
        assert_eq!(rustix::process::getpgid(pid).ok(), pid);
        assert_ne!(session(pid.unwrap()), own_session);
    }
    assert_eq!(first.containment(), ProcessContainment::Tree);
    assert_eq!(serde_json::to_string(&ProcessContainment::Tree).unwrap(), "\"tree\"");
}

#[tokio::test]
async fn dropping_stdin_sends_end_of_file() {
    let tag = ProcessTag::new();
    let (_process, mut pipes) = start(&tag.program("/bin/cat", &[])).await;
    write_stdin(&mut pipes, "kept to the end").await;
    let StdioPipes { stdin, stdout, stderr } = pipes;
    drop(stdin);
    let (stdin, _other) = tokio::net::unix::pipe::pipe().unwrap();
    assert_eq!(read_output(&mut StdioPipes { stdin, stdout, stderr }).await, "kept to the end");
}

#[tokio::test]
async fn a_launcher_is_told_from_the_server_it_runs() {
    let tag = ProcessTag::new();
    for server in ["sleep 600; exit", "exec sleep 600"] {
        // The shell is a different program before it becomes the server, and does not set a title.
        let script = format!("exec sh -c 'echo; read x; {server}' \"$@\"");
        let mut launch = tag.script(&script);
        launch.args.extend(["run", "package"].map(OsString::from));
        let changed_spec = ProcessSpec { args: launch.args[3..].to_vec(), ..launch.clone() };
        let mut launching = LaunchProbe::new(&changed_spec, &["npx"]);
        let (process, mut pipes) = start_ready(&launch).await;
        assert_eq!(process.has_started(&mut launching), Some(false));
        write_stdin(&mut pipes, "go\n").await;
        eventually("the server", || process.has_started(&mut launching) == Some(true));
    }
}

#[tokio::test]
async fn a_child_of_a_launcher_with_pipes_of_its_own_is_not_taken_for_the_server() {
    let tag = ProcessTag::new();
    // The first child is an install script; the second reads the input of the launcher.
    let script = "echo; : | sh -c 'sleep 0.5; sleep 600' | cat & read x; sleep 600; exit";
    let mut launch = tag.script(&format!("exec sh -c \"{script}\" \"$@\""));
    launch.args.extend(["run", "package"].map(OsString::from));
    let changed_spec = ProcessSpec { args: launch.args[3..].to_vec(), ..launch.clone() };
    let mut launching = LaunchProbe::new(&changed_spec, &["npx"]);
    let (process, mut pipes) = start_ready(&launch).await;
    for _ in 0..20 {
        assert_eq!(process.has_started(&mut launching), Some(false));
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    write_stdin(&mut pipes, "go\n").await;
    eventually("the server", || process.has_started(&mut launching) == Some(true));
}

#[tokio::test]
async fn a_start_that_is_cancelled_leaves_nothing() {
    let tag = ProcessTag::new();
    let (launch, supervisor) = (tag.script("sleep 600"), shim());
    for micros in (0..4000).step_by(250) {
        let limit = Duration::from_micros(micros);
        let _ = tokio::time::timeout(limit, spawn(&launch, &supervisor, None)).await;
    }
    tag.wait_for_count(0);
}
