//! Limits and sandbox: what they keep a server from, and what they leave as it is.

use std::net::TcpListener;

use super::super::{Bounds, Exit, Limit, SpawnError, Supervisor, spawn};
use super::*;
use crate::config::{Limits, Sandbox};

fn limits(limits: Limits) -> Bounds {
    Bounds::new(limits, None, Path::new("/"))
}

fn sandbox(sandbox: &Sandbox) -> Bounds {
    Bounds::new(Limits::default(), Some(sandbox), Path::new("/"))
}

/// A sandbox in which these paths, absolute ones, may be read and written.
fn writable(paths: &[&Path]) -> Sandbox {
    let write = paths.iter().map(|path| path.to_str().unwrap().to_owned()).collect();
    Sandbox { write, ..Sandbox::default() }
}

/// Bounds that change nothing for a small program, and need everything they can need.
pub(super) fn wide() -> Bounds {
    let limits = Limits {
        memory: Some(1 << 30),
        cpu_seconds: Some(60),
        open_files: Some(512),
        file_size: Some(1 << 40),
        processes: Some(100),
    };
    let everything = Sandbox { write: vec!["/".to_owned()], network: true, ..Sandbox::default() };
    Bounds::new(limits, Some(&everything), Path::new("/"))
}

async fn said(launch: &Launch) -> String {
    let (_process, mut pipes) = start(launch).await;
    output(&mut pipes).await
}

#[tokio::test]
async fn a_confined_server_gets_the_same_arguments_environment_directory_and_signals() {
    let dir = tempfile::tempdir().unwrap();
    let script = "printf '<%s>' \"$0\" \"$@\"; pwd -P; env -0 | sort -z | grep -zv ^INNKEEPER_TREE=; (cd /proc/$$/fd; echo *)
        grep -E '^(Sig(Blk|Ign|Cgt)|NSpid)' /proc/$$/status | grep -v NSpid; yes | head -1; echo $?";
    let mark = Mark::new();
    let mut launch = mark.script(script);
    launch.args.extend(["; rm -rf \"$HOME\"", "$(id)", "--", "", "ä\n"].map(OsString::from));
    launch.env.push(("ODD".into(), "a=b\n${X}".into()));
    launch.cwd = Some(dir.path().to_owned());
    let free = said(&launch).await;
    assert!(free.contains("ODD=a=b\n${X}"), "{free}");
    launch.bounds = wide();
    assert_eq!(said(&launch).await, free);
}

#[tokio::test]
async fn what_a_server_is_given_in_its_environment_is_not_loaded_outside_of_its_sandbox() {
    let [open, closed] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mark = Mark::new();
    let mut launch = mark.script("echo ended");
    // The loader of every program that is executed with these writes such a file.
    let trace = closed.path().join("trace");
    launch.env.push(("LD_DEBUG".into(), "libs".into()));
    launch.env.push(("LD_DEBUG_OUTPUT".into(), trace.into()));
    let written = || std::fs::read_dir(closed.path()).unwrap().count();
    launch.bounds = sandbox(&writable(&[open.path()]));
    assert!(said(&launch).await.ends_with("ended\n"));
    assert_eq!(written(), 0);
    launch.bounds = sandbox(&writable(&[closed.path()]));
    assert!(said(&launch).await.ends_with("ended\n"));
    assert_eq!(written(), 1, "the server's own loader, and no other");
}

#[tokio::test]
async fn a_confined_server_is_given_an_environment_larger_than_a_pipe_takes_at_once() {
    let mark = Mark::new();
    let mut launch = mark.script("printf %s \"$A$B$C\" | wc -c");
    for name in ["A", "B", "C"] {
        launch.env.push((name.into(), "x".repeat(100_000).into()));
    }
    launch.bounds = wide();
    assert_eq!(said(&launch).await.trim(), "300000");
}

#[tokio::test]
async fn a_confined_program_that_cannot_be_started_fails_as_it_would_without_bounds() {
    use std::os::unix::fs::PermissionsExt;
    let mark = Mark::new();
    let dir = tempfile::tempdir().unwrap();
    let files = [
        ("no-magic", "no magic here", 0o755),
        ("no-interpreter", "#!/nonexistent/interpreter\n", 0o755),
        ("no-permission", "#!/bin/sh\n", 0o644),
    ];
    for (name, content, mode) in files {
        let path = dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let nowhere = Launch { cwd: Some(dir.path().join("nowhere")), ..mark.script("true") };
    let launches = ["no-magic", "no-interpreter", "no-permission", "no-file"]
        .map(|name| mark.program(dir.path().join(name), &[]));
    for mut launch in launches.into_iter().chain([nowhere]) {
        let free = spawn(&launch, &shim(), None).await.unwrap_err();
        launch.bounds = wide();
        let confined = spawn(&launch, &shim(), None).await.unwrap_err();
        assert_eq!(confined.to_string(), free.to_string());
    }
    mark.reaches(0);
}

#[tokio::test]
async fn limits_hold_for_the_server_and_what_it_starts_and_are_never_raised() {
    let mark = Mark::new();
    let mut launch =
        mark.script("sh -c 'ulimit -n; ulimit -Hn; ulimit -d; ulimit -t; ulimit -f; ulimit -Hc'");
    let set = Limits {
        open_files: Some(64),
        file_size: Some(1 << 20),
        memory: Some(64 << 20),
        cpu_seconds: Some(9),
        processes: None,
    };
    launch.bounds = limits(set);
    assert_eq!(said(&launch).await, "64\n64\n65536\n9\n2048\n0\n");
    let mut launch = mark.script("ulimit -n");
    let free = said(&launch).await;
    launch.bounds = limits(Limits { open_files: Some(1 << 40), ..Limits::default() });
    assert_eq!(said(&launch).await, free);
}

/// Proves: TR10.4
#[tokio::test]
async fn a_program_that_takes_more_memory_than_its_limit_is_refused_it() {
    let mark = Mark::new();
    let mut launch = mark.script("x=x; while :; do x=$x$x; done");
    launch.bounds = limits(Limits { memory: Some(64 << 20), ..Limits::default() });
    let (mut process, _pipes) = start(&launch).await;
    assert!(!exited(&mut process).await.success());
    gone(&mut process).await;
}

/// Proves: TR10.4
#[tokio::test]
async fn a_program_that_uses_up_its_processor_time_is_ended_and_the_exit_says_so() {
    let mark = Mark::new();
    let mut launch = mark.script("while :; do :; done");
    launch.bounds = limits(Limits { cpu_seconds: Some(1), ..Limits::default() });
    let (mut process, _pipes) = start(&launch).await;
    assert_eq!(exited(&mut process).await, Exit::OverLimit(Limit::CpuSeconds));
}

/// Fault 89.
#[tokio::test]
async fn a_program_that_writes_a_longer_file_than_its_limit_is_refused_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let mark = Mark::new();
    let mut launch = mark.script("trap '' XFSZ; head -c 5000 /dev/zero > file; wc -c < file");
    launch.cwd = Some(dir.path().to_owned());
    launch.bounds = limits(Limits { file_size: Some(4096), ..Limits::default() });
    assert_eq!(said(&launch).await.trim(), "4096");
}

#[tokio::test]
async fn the_same_signal_without_that_limit_is_only_a_signal() {
    let mark = Mark::new();
    let mut launch = mark.script("kill -XCPU $$");
    launch.bounds = limits(Limits { open_files: Some(64), ..Limits::default() });
    let (mut process, _pipes) = start(&launch).await;
    assert_eq!(exited(&mut process).await.to_string(), "signal 24 (SIGXCPU)");
}

#[tokio::test]
async fn a_tree_with_more_processes_than_its_limit_is_ended_and_the_exit_says_so() {
    let mark = Mark::new();
    let mut launch = mark.script("sleep 600 & sleep 600 & echo; read x; sleep 600 & wait");
    launch.bounds = limits(Limits { processes: Some(3), ..Limits::default() });
    let (mut process, mut pipes) = start_ready(&launch).await;
    mark.reaches(3);
    // At its limit it runs for longer than a count takes.
    let rest = tokio::time::timeout(Duration::from_millis(500), process.exited()).await;
    assert!(rest.is_err(), "{rest:?}");
    say(&mut pipes, "more\n").await;
    assert_eq!(exited(&mut process).await, Exit::OverLimit(Limit::Processes));
    gone(&mut process).await;
    mark.reaches(0);
}

#[tokio::test]
async fn a_sandbox_lets_a_server_read_and_write_what_is_allowed_and_nothing_else() {
    let mark = Mark::new();
    let [readable, open, closed] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    for dir in [&readable, &open, &closed] {
        std::fs::write(dir.path().join("file"), "content").unwrap();
    }
    let mut rules = writable(&[open.path()]);
    rules.read.push(readable.path().to_str().unwrap().to_owned());
    let script = "for dir; do
        cat $dir/file >/dev/null && echo read; echo >$dir/new && echo write
        sh -c \"rm $dir/file\" && echo rm; done; cat /etc/shadow /etc/passwd >/dev/null || echo no";
    let mut launch = mark.script(script);
    launch.args.extend([&readable, &open, &closed].map(|dir| dir.path().as_os_str().to_owned()));
    launch.bounds = sandbox(&rules);
    assert_eq!(said(&launch).await, "read\nread\nwrite\nrm\nno\n");
    assert!(closed.path().join("file").exists() && !closed.path().join("new").exists());
}

#[tokio::test]
async fn a_relative_path_of_a_sandbox_starts_at_the_directory_of_the_server() {
    let mark = Mark::new();
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    let mut launch = mark.script("echo in >data/in && cat data/in; echo >out || echo no");
    launch.cwd = Some(dir.path().to_owned());
    let rules = Sandbox { write: vec!["./data".to_owned()], ..Sandbox::default() };
    launch.bounds = Bounds::new(Limits::default(), Some(&rules), dir.path());
    assert_eq!(said(&launch).await, "in\nno\n");
}

#[tokio::test]
async fn a_sandbox_keeps_a_server_from_the_environment_and_the_processes_of_its_host() {
    let mark = Mark::new();
    let host = std::process::id();
    let script = format!(
        "cat /proc/{host}/environ >/dev/null || echo unread; kill -0 {host} || echo unreached
         sleep 600 & kill $! && echo own"
    );
    let mut launch = mark.script(&script);
    launch.bounds = sandbox(&Sandbox::default());
    assert_eq!(said(&launch).await, "unread\nunreached\nown\n");
}

#[tokio::test]
async fn a_sandbox_without_network_refuses_connections_and_one_with_it_does_not() {
    let mark = Mark::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let to = format!("127.0.0.1/{port}");
    let script =
        format!("echo hi >/dev/tcp/{to} && echo tcp; echo hi >/dev/udp/{to} && echo udp; echo end");
    let mut launch = mark.program("/bin/bash", &["-c", &script]);
    for (network, told) in [(false, "end\n"), (true, "tcp\nudp\nend\n")] {
        launch.bounds = sandbox(&Sandbox { network, ..Sandbox::default() });
        assert_eq!(said(&launch).await, told, "network: {network}");
    }
}

#[tokio::test]
async fn a_server_whose_sandbox_cannot_be_had_is_not_started() {
    let mark = Mark::new();
    let mut launch = mark.script("echo ran");
    launch.bounds = sandbox(&Sandbox::default());
    let error = spawn(&launch, &Supervisor::Group, None).await.unwrap_err();
    assert!(matches!(error, SpawnError::Bounds { .. }), "{error}");
    let told = "the limits or sandbox of command `the-command` cannot be applied: a sandbox needs \
                the program `innkeeper-shim`, which was not found";
    assert_eq!(error.to_string(), told);
    mark.reaches(0);
}

/// Takes Landlock away from this thread and the processes it starts, as an older kernel would.
fn without_landlock() {
    use seccompiler::{SeccompAction, SeccompFilter, TargetArch, apply_filter};
    let rules = [(libc::SYS_landlock_create_ruleset, Vec::new())].into();
    let refuse = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let target = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, target).unwrap();
    apply_filter(&seccompiler::BpfProgram::try_from(filter).unwrap()).unwrap();
}

#[tokio::test]
async fn a_server_is_not_started_by_a_kernel_that_cannot_give_it_its_sandbox() {
    without_landlock();
    let mark = Mark::new();
    let mut launch = mark.script("echo ran");
    assert_eq!(said(&launch).await, "ran\n");
    launch.bounds = sandbox(&Sandbox::default());
    let error = spawn(&launch, &shim(), None).await.unwrap_err();
    assert!(matches!(error, SpawnError::Bounds { .. }), "{error}");
    assert!(
        error.to_string().ends_with("needs Landlock, which this kernel lacks or has turned off")
    );
    mark.reaches(0);
}

#[tokio::test]
async fn a_confined_tree_is_ended_whatever_it_does() {
    let mark = Mark::new();
    let mut launch = mark.script(super::hostile::HOSTILE);
    launch.bounds = wide();
    let (mut process, _pipes) = start_ready(&launch).await;
    mark.reaches(super::hostile::HOSTILE_COUNT);
    process.kill();
    gone(&mut process).await;
    mark.reaches(0);
}
