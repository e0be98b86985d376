//! Tests of resource limits and the sandbox.

use std::net::TcpListener;

use innkeeper_config::{ResourceLimits, SandboxConfig};

use super::super::{Confinement, ExitStatus, ProcessLimit, SpawnError, Supervisor, spawn};
use super::*;

fn with_limits(limits: ResourceLimits) -> Confinement {
    Confinement::new(limits, None, Path::new("/"))
}

fn with_sandbox(sandbox: &SandboxConfig) -> Confinement {
    Confinement::new(ResourceLimits::default(), Some(sandbox), Path::new("/"))
}

/// Returns a sandbox that allows read and write access to these absolute paths.
fn writable(paths: &[&Path]) -> SandboxConfig {
    let write = paths.iter().map(|path| path.to_str().unwrap().to_owned()).collect();
    SandboxConfig { write, ..SandboxConfig::default() }
}

/// Returns a confinement that uses every setting and does not affect a small program.
pub(super) fn permissive() -> Confinement {
    let limits = ResourceLimits {
        memory: Some(1 << 30),
        cpu_seconds: Some(60),
        open_files: Some(512),
        file_size: Some(1 << 40),
        processes: Some(100),
    };
    let everything =
        SandboxConfig { write: vec!["/".to_owned()], network: true, ..SandboxConfig::default() };
    Confinement::new(limits, Some(&everything), Path::new("/"))
}

async fn stdout_of(launch: &ProcessSpec) -> String {
    let (_process, mut pipes) = start(launch).await;
    read_output(&mut pipes).await
}

#[tokio::test]
async fn a_confined_server_gets_the_same_arguments_environment_directory_and_signals() {
    let dir = tempfile::tempdir().unwrap();
    let script = "printf '<%s>' \"$0\" \"$@\"; pwd -P; env -0 | sort -z | grep -zv ^INNKEEPER_TREE=; (cd /proc/$$/fd; echo *)
        while read -r line; do case $line in Sig[BIC]*) echo \"$line\";; esac; done </proc/$$/status; yes | head -1; echo $?";
    let tag = ProcessTag::new();
    let mut launch = tag.script(script);
    launch.args.extend(["; rm -rf \"$HOME\"", "$(id)", "--", "", "ä\n"].map(OsString::from));
    launch.env.push(("ODD".into(), "a=b\n${X}".into()));
    launch.cwd = Some(dir.path().to_owned());
    let free = stdout_of(&launch).await;
    assert!(free.contains("ODD=a=b\n${X}"), "{free}");
    launch.confinement = permissive();
    assert_eq!(stdout_of(&launch).await, free);
}

/// Attack: sandbox | variables of a server make the loader of the supervisor write a file | the
/// loader of the server alone reads the variables, inside the sandbox | Confinement holds
#[tokio::test]
async fn what_a_server_is_given_in_its_environment_is_not_loaded_outside_of_its_sandbox() {
    let [open, closed] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let tag = ProcessTag::new();
    let mut launch = tag.script("echo ended");
    // With these variables, the loader of every executed program writes such a file.
    let trace = closed.path().join("trace");
    launch.env.push(("LD_DEBUG".into(), "libs".into()));
    launch.env.push(("LD_DEBUG_OUTPUT".into(), trace.into()));
    let trace_files = || std::fs::read_dir(closed.path()).unwrap().count();
    launch.confinement = with_sandbox(&writable(&[open.path()]));
    assert!(stdout_of(&launch).await.ends_with("ended\n"));
    assert_eq!(trace_files(), 0);
    launch.confinement = with_sandbox(&writable(&[closed.path()]));
    assert!(stdout_of(&launch).await.ends_with("ended\n"));
    assert_eq!(trace_files(), 1, "the server's own loader, and no other");
}

#[tokio::test]
async fn a_confined_server_is_given_an_environment_larger_than_a_pipe_takes_at_once() {
    let tag = ProcessTag::new();
    let mut launch = tag.script("printf %s \"$A$B$C\" | wc -c");
    for name in ["A", "B", "C"] {
        launch.env.push((name.into(), "x".repeat(100_000).into()));
    }
    launch.confinement = permissive();
    assert_eq!(stdout_of(&launch).await.trim(), "300000");
}

#[tokio::test]
async fn a_confined_program_that_cannot_be_started_fails_as_it_would_without_confinement() {
    use std::os::unix::fs::PermissionsExt;
    let tag = ProcessTag::new();
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
    let nowhere = ProcessSpec { cwd: Some(dir.path().join("nowhere")), ..tag.script("true") };
    let launches = ["no-magic", "no-interpreter", "no-permission", "no-file"]
        .map(|name| tag.program(dir.path().join(name), &[]));
    for mut launch in launches.into_iter().chain([nowhere]) {
        let free = spawn(&launch, &shim(), None).await.unwrap_err();
        launch.confinement = permissive();
        let confined = spawn(&launch, &shim(), None).await.unwrap_err();
        assert_eq!(confined.to_string(), free.to_string());
    }
    tag.wait_for_count(0);
}

/// Attack: sandbox | a child exceeds the limits, or the entry names a higher limit than the system
/// | the limits hold for children and are never raised | Confinement holds
#[tokio::test]
async fn limits_hold_for_the_server_and_what_it_starts_and_are_never_raised() {
    let tag = ProcessTag::new();
    let mut launch =
        tag.script("sh -c 'ulimit -n; ulimit -Hn; ulimit -d; ulimit -t; ulimit -f; ulimit -Hc'");
    let set = ResourceLimits {
        open_files: Some(64),
        file_size: Some(1 << 20),
        memory: Some(64 << 20),
        cpu_seconds: Some(9),
        processes: None,
    };
    launch.confinement = with_limits(set);
    assert_eq!(stdout_of(&launch).await, "64\n64\n65536\n9\n2048\n0\n");
    let mut launch = tag.script("ulimit -n");
    let free = stdout_of(&launch).await;
    launch.confinement =
        with_limits(ResourceLimits { open_files: Some(1 << 40), ..ResourceLimits::default() });
    assert_eq!(stdout_of(&launch).await, free);
}

/// Attack: sandbox | a program doubles a string without end | the program fails at its memory limit
/// | Confinement holds
/// Proves: TR10.4
#[tokio::test]
async fn a_program_that_takes_more_memory_than_its_limit_is_refused_it() {
    let tag = ProcessTag::new();
    let mut launch = tag.script("x=x; while :; do x=$x$x; done");
    launch.confinement =
        with_limits(ResourceLimits { memory: Some(64 << 20), ..ResourceLimits::default() });
    let (mut process, _pipes) = start(&launch).await;
    assert!(!expect_exit(&mut process).await.success());
    expect_tree_gone(&mut process).await;
}

/// Attack: sandbox | a program uses the CPU without end | the kernel ends the program, and the exit
/// status names the limit | Confinement holds
/// Proves: TR10.4
#[tokio::test]
async fn a_program_that_uses_up_its_cpu_time_is_ended_and_the_exit_status_says_so() {
    let tag = ProcessTag::new();
    let mut launch = tag.script("while :; do :; done");
    launch.confinement =
        with_limits(ResourceLimits { cpu_seconds: Some(1), ..ResourceLimits::default() });
    let (mut process, _pipes) = start(&launch).await;
    assert_eq!(
        expect_exit(&mut process).await,
        ExitStatus::LimitExceeded(ProcessLimit::CpuSeconds)
    );
}

/// Fault 89.
/// Attack: sandbox | a program writes more than its file size limit | the rest is not written |
/// Confinement holds
#[tokio::test]
async fn a_program_that_writes_a_longer_file_than_its_limit_is_refused_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let tag = ProcessTag::new();
    let mut launch = tag.script("trap '' XFSZ; head -c 5000 /dev/zero > file; wc -c < file");
    launch.cwd = Some(dir.path().to_owned());
    launch.confinement =
        with_limits(ResourceLimits { file_size: Some(4096), ..ResourceLimits::default() });
    assert_eq!(stdout_of(&launch).await.trim(), "4096");
}

#[tokio::test]
async fn the_same_signal_without_that_limit_is_only_a_signal() {
    let tag = ProcessTag::new();
    let mut launch = tag.script("kill -XCPU $$");
    launch.confinement =
        with_limits(ResourceLimits { open_files: Some(64), ..ResourceLimits::default() });
    let (mut process, _pipes) = start(&launch).await;
    assert_eq!(expect_exit(&mut process).await.to_string(), "signal 24 (SIGXCPU)");
}

/// Attack: sandbox | a server starts more processes than its limit | the tree is ended, and the
/// exit status names the limit | Confinement holds
#[tokio::test]
async fn a_tree_with_more_processes_than_its_limit_is_ended_and_the_exit_says_so() {
    let tag = ProcessTag::new();
    let mut launch = tag.script("sleep 600 & sleep 600 & echo; read x; sleep 600 & wait");
    launch.confinement =
        with_limits(ResourceLimits { processes: Some(3), ..ResourceLimits::default() });
    let (mut process, mut pipes) = start_ready(&launch).await;
    tag.wait_for_count(3);
    // At its process limit, the server runs for longer than one count takes.
    let rest = tokio::time::timeout(Duration::from_millis(500), process.wait()).await;
    assert!(rest.is_err(), "{rest:?}");
    write_stdin(&mut pipes, "more\n").await;
    assert_eq!(expect_exit(&mut process).await, ExitStatus::LimitExceeded(ProcessLimit::Processes));
    expect_tree_gone(&mut process).await;
    tag.wait_for_count(0);
}

/// Attack: sandbox | a sandboxed server and its child read, write and delete outside of the
/// permitted paths | each access is refused | Confinement holds
#[tokio::test]
async fn a_sandbox_lets_a_server_read_and_write_what_is_allowed_and_nothing_else() {
    let tag = ProcessTag::new();
    let [readable, open, closed] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    for dir in [&readable, &open, &closed] {
        std::fs::write(dir.path().join("file"), "content").unwrap();
    }
    let mut rules = writable(&[open.path()]);
    rules.read.push(readable.path().to_str().unwrap().to_owned());
    let script = "for dir; do
        cat $dir/file >/dev/null && echo read; echo >$dir/new && echo write
        sh -c \"rm $dir/file\" && echo rm; done; cat /etc/shadow /etc/passwd >/dev/null || echo no";
    let mut launch = tag.script(script);
    launch.args.extend([&readable, &open, &closed].map(|dir| dir.path().as_os_str().to_owned()));
    launch.confinement = with_sandbox(&rules);
    assert_eq!(stdout_of(&launch).await, "read\nread\nwrite\nrm\nno\n");
    assert!(closed.path().join("file").exists() && !closed.path().join("new").exists());
}

#[tokio::test]
async fn a_relative_path_of_a_sandbox_starts_at_the_directory_of_the_server() {
    let tag = ProcessTag::new();
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    let mut launch = tag.script("echo in >data/in && cat data/in; echo >out || echo no");
    launch.cwd = Some(dir.path().to_owned());
    let rules = SandboxConfig { write: vec!["./data".to_owned()], ..SandboxConfig::default() };
    launch.confinement = Confinement::new(ResourceLimits::default(), Some(&rules), dir.path());
    assert_eq!(stdout_of(&launch).await, "in\nno\n");
}

/// Attack: sandbox | a sandboxed server reads the environment of the host and sends a signal | both
/// are refused | Secrets stay with their owner
#[tokio::test]
async fn a_sandbox_keeps_a_server_from_the_environment_and_the_processes_of_its_host() {
    let tag = ProcessTag::new();
    let host = std::process::id();
    let script = format!(
        "cat /proc/{host}/environ >/dev/null || echo unread; kill -0 {host} || echo unreached
         sleep 600 & kill $! && echo own"
    );
    let mut launch = tag.script(&script);
    launch.confinement = with_sandbox(&SandboxConfig::default());
    assert_eq!(stdout_of(&launch).await, "unread\nunreached\nown\n");
}

/// Attack: sandbox | a server without network opens TCP and UDP connections | both are refused |
/// Confinement holds
#[tokio::test]
async fn a_sandbox_without_network_refuses_connections_and_one_with_it_does_not() {
    let tag = ProcessTag::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let to = format!("127.0.0.1/{port}");
    let script =
        format!("echo hi >/dev/tcp/{to} && echo tcp; echo hi >/dev/udp/{to} && echo udp; echo end");
    let mut launch = tag.program("/bin/bash", &["-c", &script]);
    for (network, expected) in [(false, "end\n"), (true, "tcp\nudp\nend\n")] {
        launch.confinement = with_sandbox(&SandboxConfig { network, ..SandboxConfig::default() });
        assert_eq!(stdout_of(&launch).await, expected, "network: {network}");
    }
}

/// Attack: sandbox | a sandboxed server without a supervisor | the server does not start |
/// Confinement holds
#[tokio::test]
async fn a_server_whose_sandbox_cannot_be_had_is_not_started() {
    let tag = ProcessTag::new();
    let mut launch = tag.script("echo ran");
    launch.confinement = with_sandbox(&SandboxConfig::default());
    let error = spawn(&launch, &Supervisor::Group, None).await.unwrap_err();
    assert!(matches!(error, SpawnError::Confinement { .. }), "{error}");
    let expected = "the limits or sandbox of command `the-command` cannot be applied: sandboxing \
                requires `innkeeper-shim`, which was not found";
    assert_eq!(error.to_string(), expected);
    tag.wait_for_count(0);
}

#[tokio::test]
async fn a_server_is_not_started_by_a_kernel_that_cannot_give_it_its_sandbox() {
    refuse_call(libc::SYS_landlock_create_ruleset, libc::ENOSYS);
    let tag = ProcessTag::new();
    let mut launch = tag.script("echo ran");
    assert_eq!(stdout_of(&launch).await, "ran\n");
    launch.confinement = with_sandbox(&SandboxConfig::default());
    let error = spawn(&launch, &shim(), None).await.unwrap_err();
    assert!(matches!(error, SpawnError::Confinement { .. }), "{error}");
    assert!(error.to_string().ends_with("requires Landlock, which this kernel lacks or disables"));
    tag.wait_for_count(0);
}

/// Attack: sandbox | a confined server starts daemons, sessions and processes that ignore signals |
/// a kill ends the whole tree | No orphan
#[tokio::test]
async fn a_confined_tree_is_ended_whatever_it_does() {
    let tag = ProcessTag::new();
    let mut launch = tag.script(super::hostile::HOSTILE_SCRIPT);
    launch.confinement = permissive();
    let (mut process, _pipes) = start_ready(&launch).await;
    tag.wait_for_count(super::hostile::HOSTILE_COUNT);
    process.kill();
    expect_tree_gone(&mut process).await;
    tag.wait_for_count(0);
}
