//! Tests that a sandboxed server does not reach what is outside: each attempt is a system call.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, chown};

use innkeeper_config::{ResourceLimits, SandboxConfig};

use super::super::{Confinement, Supervisor, spawn};
use super::hostile::unprivileged_renamed_shim;
use super::*;

/// What a server tries to reach.
struct Outside {
    /// A process of the user of the server.
    victim: Child,
    dir: tempfile::TempDir,
}

impl Outside {
    fn new(user: Option<u32>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::create_dir(dir.path().join("inside")).unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        std::fs::write(dir.path().join("file-of-root"), "").unwrap();
        for path in ["", "file", "inside"] {
            chown(dir.path().join(path), user, user).unwrap();
        }
        let victim = match user {
            Some(user) => format!("echo; exec setpriv --reuid={user} --clear-groups sleep 600"),
            None => "echo; exec sleep 600".to_owned(),
        };
        let victim = shell(&victim);
        eventually("the victim to run as the user", || {
            std::fs::read(format!("/proc/{}/comm", victim.id()))
                .is_ok_and(|name| name == b"sleep\n")
        });
        Self { victim, dir }
    }

    /// Returns the attempts as expressions of Perl, which are true if the attempt succeeds.
    fn attempts(&self) -> Vec<(&'static str, String)> {
        let pid = self.victim.id();
        let file = self.dir.path().join("file").to_str().unwrap().to_owned();
        let node = self.dir.path().join("inside/node").to_str().unwrap().to_owned();
        let on_pidfd = |number: i64, arguments: &str| {
            let open = libc::SYS_pidfd_open;
            format!(
                "do {{ my $process = syscall({open}, {pid}, 0); call({number}, $process, {arguments}) }}"
            )
        };
        let (stat, memory) = (format!("/proc/{pid}/environ"), format!("/proc/{pid}/mem"));
        vec![
            (
                "prlimit",
                call(libc::SYS_prlimit64, &format!("{pid}, 0, pack('QQ', 99999, 99999), 0")),
            ),
            ("setpriority", call(libc::SYS_setpriority, &format!("0, {pid}, 5"))),
            ("ioprio_set", call(libc::SYS_ioprio_set, &format!("1, {pid}, (2 << 13) | 4"))),
            (
                "sched_setaffinity",
                call(libc::SYS_sched_setaffinity, &format!("{pid}, 8, pack('Q', 1)")),
            ),
            ("kill", call(libc::SYS_kill, &format!("{pid}, 0"))),
            ("pidfd_send_signal", on_pidfd(libc::SYS_pidfd_send_signal, "0, 0, 0")),
            ("pidfd_getfd", on_pidfd(libc::SYS_pidfd_getfd, "0, 0")),
            ("kcmp", call(libc::SYS_kcmp, &format!("$$, {pid}, 1, 0, 0"))),
            ("ptrace", call(libc::SYS_ptrace, &format!("16, {pid}, 0, 0"))),
            (
                "process_vm_readv",
                call(
                    libc::SYS_process_vm_readv,
                    &format!("{pid}, pack('PQ', 'x' x 8, 8), 1, pack('QQ', 1, 8), 1, 0"),
                ),
            ),
            ("environ", format!("open(my $opened, '<', '{stat}')")),
            ("mem", format!("open(my $opened, '<', '{memory}')")),
            ("chmod", format!("chmod(0600, '{file}')")),
            ("utime", format!("utime(1, 1, '{file}')")),
            ("setxattr", call(libc::SYS_setxattr, &format!("'{file}', 'user.test', 'x', 1, 0"))),
            ("chown", format!("chown(-1, -1, '{file}')")),
            ("chown to a user", format!("chown(12345, -1, '{file}-of-root')")),
            ("keyctl", call(libc::SYS_keyctl, "0, -4, 1")),
            ("shmget", call(libc::SYS_shmget, "0x7ffe1234, 0, 0")),
            ("semget", call(libc::SYS_semget, "0x7ffe1234, 0, 0")),
            ("msgget", call(libc::SYS_msgget, "0x7ffe1234, 0")),
            ("mq_open", call(libc::SYS_mq_open, "'innkeeper-none', 0, 0, 0")),
            ("io_uring_setup", call(libc::SYS_io_uring_setup, "0, 0")),
            ("netlink audit", call(libc::SYS_socket, "16, 3, 9")),
            (
                "block device node",
                call(libc::SYS_mknodat, &format!("-100, '{node}', 060600, 0x7f00")),
            ),
        ]
    }

    /// Runs all attempts in a server; returns the error number of each, 0 for success.
    async fn run(&self, supervisor: &Supervisor, sandbox: Option<&SandboxConfig>) -> Errors {
        self.run_attempts(&self.attempts(), supervisor, sandbox).await
    }

    async fn run_attempts(
        &self,
        attempts: &[(&'static str, String)],
        supervisor: &Supervisor,
        sandbox: Option<&SandboxConfig>,
    ) -> Errors {
        let mut script = "sub call { syscall($_[0], @_[1..$#_]) != -1 }\n".to_owned();
        for (name, attempt) in attempts {
            script += &format!("$! = 0; print '{name}=', (({attempt}) ? 0 : $! + 0), \"\\n\";\n");
        }
        // System calls with more arguments than values need numbers, not texts.
        let script = script.replace("@_[1..$#_]", "map { /^-?\\d+$/ ? $_ + 0 : $_ } @_[1..$#_]");
        // An earlier run without a sandbox may have made the node.
        let _ = std::fs::remove_file(self.dir.path().join("inside/node"));
        let tag = ProcessTag::new();
        let mut launch = tag.program("/usr/bin/perl", &["-e", &script]);
        launch.cwd = Some(self.dir.path().to_owned());
        launch.confinement = Confinement::new(ResourceLimits::default(), sandbox, self.dir.path());
        let (_process, mut pipes) = spawn(&launch, supervisor, None).await.unwrap();
        let output = read_output(&mut pipes).await;
        let lines = output.lines().filter_map(|line| line.split_once('='));
        lines.map(|(name, errno)| (name.to_owned(), errno.parse().unwrap())).collect()
    }
}

/// Returns a system call as an expression of Perl.
fn call(number: i64, arguments: &str) -> String {
    format!("call({number}, {arguments})")
}

type Errors = BTreeMap<String, i32>;

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Returns the supervisors to test: of this user, and of an ordinary user if root runs the test.
fn supervisors() -> Vec<(Option<u32>, Supervisor, Option<tempfile::TempDir>)> {
    let mut supervisors = vec![(None, shim(), None)];
    if rustix::process::geteuid().is_root() {
        let (dir, supervisor) = unprivileged_renamed_shim();
        supervisors.push((Some(65534), supervisor, Some(dir)));
    }
    supervisors
}

/// Attack: sandbox | limits, signals, modes, owners, times, attributes, devices, keys and shared
/// memory outside of the sandbox, as root and as a user | each attempt is refused | Confinement
/// holds
#[tokio::test]
async fn a_sandboxed_server_changes_nothing_outside_of_its_sandbox() {
    for (user, supervisor, _dir) in supervisors() {
        let outside = Outside::new(user);
        let free = outside.run(&supervisor, None).await;
        let network = SandboxConfig { network: true, ..SandboxConfig::default() };
        for sandbox in [SandboxConfig::default(), network] {
            let confined = outside.run(&supervisor, Some(&sandbox)).await;
            for (name, _) in outside.attempts() {
                let (free, confined) = (free[name], confined[name]);
                let refused = [libc::EPERM, libc::EACCES, libc::EOPNOTSUPP];
                assert!(refused.contains(&confined), "{name}: {confined}, user {user:?}");
                let needs_root =
                    ["block device node", "chown to a user"].contains(&name) && user.is_some();
                assert!(!refused.contains(&free) || needs_root, "{name}: {free} without a sandbox");
            }
        }
    }
}

/// The attempts have an effect on every process of the user, also on processes that have nothing to
/// do with this test: only a sandboxed server makes them, with the default values.
///
/// Attack: sandbox | a server sets priority and input/output priority of all processes of its user,
/// as root and as a user | each attempt is refused | Confinement holds
#[tokio::test]
async fn a_sandboxed_server_changes_no_priority_of_all_processes_of_its_user() {
    for (user, supervisor, _dir) in supervisors() {
        let outside = Outside::new(user);
        let id = user.unwrap_or_else(|| rustix::process::geteuid().as_raw());
        let attempts = [
            ("setpriority of the own user", call(libc::SYS_setpriority, "2, 0, 0")),
            ("setpriority of a user", call(libc::SYS_setpriority, &format!("2, {id}, 0"))),
            ("ioprio_set of the own user", call(libc::SYS_ioprio_set, "3, 0, 0")),
            ("ioprio_set of a user", call(libc::SYS_ioprio_set, &format!("3, {id}, 0"))),
        ];
        let network = SandboxConfig { network: true, ..SandboxConfig::default() };
        for sandbox in [SandboxConfig::default(), network] {
            let confined = outside.run_attempts(&attempts, &supervisor, Some(&sandbox)).await;
            for (name, _) in &attempts {
                assert_eq!(confined[*name], libc::EPERM, "{name}, user {user:?}");
            }
        }
    }
}

/// Attack: sandbox | a server with one writable path makes devices, changes owners to users and
/// limits of other processes | each attempt is refused | Confinement holds
#[tokio::test]
async fn a_writable_path_lets_a_server_change_modes_and_times_and_make_no_device() {
    for (user, supervisor, _dir) in supervisors() {
        let outside = Outside::new(user);
        let sandbox =
            SandboxConfig { write: vec!["inside".to_owned()], ..SandboxConfig::default() };
        let errors = outside.run(&supervisor, Some(&sandbox)).await;
        // The page of the sandbox says so: the kernel restricts neither by path.
        let changes = ["chmod", "utime", "chown"].map(|name| errors[name]);
        assert_eq!(changes, [0; 3], "user {user:?}");
        for refused in ["setxattr", "chown to a user", "prlimit", "kill", "block device node"] {
            assert_ne!(errors[refused], 0, "{refused}, user {user:?}");
        }
    }
}

/// Attack: sandbox | a server with a writable path makes set-id files and user namespaces, as root and
/// as a user | each attempt is refused | Confinement holds
#[tokio::test]
async fn a_sandboxed_server_makes_no_set_id_file_and_no_user_namespace() {
    for (user, supervisor, _dir) in supervisors() {
        let outside = Outside::new(user);
        let inside = outside.dir.path().join("inside");
        std::fs::write(inside.join("file"), "").unwrap();
        chown(inside.join("file"), user, user).unwrap();
        let path = |name: &str| format!("'{}'", inside.join(name).to_str().unwrap());
        let create = libc::O_CREAT | libc::O_WRONLY;
        let directory = inside.to_str().unwrap();
        let openat = |mode: u32| {
            call(libc::SYS_openat, &format!("-100, {}, {create}, {mode}", path(&mode.to_string())))
        };
        let attempts = [
            ("chmod", format!("chmod(04755, {})", path("file"))),
            ("fchmodat", call(libc::SYS_fchmodat, &format!("-100, {}, 02755", path("file")))),
            ("openat with setuid", openat(0o4755)),
            ("openat with setgid", openat(0o2755)),
            ("openat with both", openat(0o6755)),
            (
                "temporary file",
                call(
                    libc::SYS_openat,
                    &format!("-100, '{directory}', {}, 04755", libc::O_TMPFILE | 1),
                ),
            ),
            ("mknodat", call(libc::SYS_mknodat, &format!("-100, {}, 0104755, 0", path("node")))),
            (
                "openat2",
                call(
                    libc::SYS_openat2,
                    &format!("-100, {}, pack('Q3', {create}, 04755, 0), 24", path("x")),
                ),
            ),
            ("unshare", call(libc::SYS_unshare, &0x1000_0000.to_string())),
            ("clone3", call(libc::SYS_clone3, "pack('Q8', 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64")),
            ("setns", call(libc::SYS_setns, "0, 0")),
        ];
        let sandbox =
            SandboxConfig { write: vec!["inside".to_owned()], ..SandboxConfig::default() };
        let errors = outside.run_attempts(&attempts, &supervisor, Some(&sandbox)).await;
        for (name, _) in &attempts {
            let missing = ["openat2", "clone3"].contains(name);
            let expected = if missing { libc::ENOSYS } else { libc::EPERM };
            assert_eq!(errors[*name], expected, "{name}, user {user:?}");
        }
        // What other programs do with modes stays possible.
        let modes = [
            ("plain mode", format!("chmod(0755, {})", path("file"))),
            ("sticky", format!("chmod(01777, {})", path("file"))),
            ("new file", openat(0o644)),
            // Without `O_CREAT`, the last argument is whatever the register has.
            ("open", call(libc::SYS_openat, &format!("-100, {}, 0, 04755", path("file")))),
            ("fork", "defined($child = fork()) && ($child || exit)".to_owned()),
        ];
        let errors = outside.run_attempts(&modes, &supervisor, Some(&sandbox)).await;
        for (name, _) in &modes {
            assert_eq!(errors[*name], 0, "{name}, user {user:?}");
        }
    }
}

/// Attack: sandbox | a server replaces a permitted path in a directory that it may write by a link |
/// its next start does not open the target | Confinement holds
#[tokio::test]
async fn a_link_that_a_server_made_is_no_door_at_its_next_start() {
    for (user, supervisor, _dir) in supervisors() {
        let outside = Outside::new(user);
        let file = outside.dir.path().join("file").to_str().unwrap().to_owned();
        std::os::unix::fs::symlink("../file", outside.dir.path().join("inside/link")).unwrap();
        let read = |path: &str| vec![("read", format!("open(my $opened, '<', '{path}')"))];
        let attempts = read(&file);
        let open = |read: &[&str], write: &[&str]| {
            let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
            SandboxConfig { read: owned(read), write: owned(write), ..SandboxConfig::default() }
        };
        for (sandbox, is_reached) in [
            (open(&["inside/link"], &["inside"]), false),
            (open(&[], &["inside", "inside/link"]), false),
            (open(&["inside/../inside/link"], &["inside/."]), false),
            // The link is the user's if the server can't write next to it.
            (open(&["inside/link"], &[]), true),
        ] {
            let errors = outside.run_attempts(&attempts, &supervisor, Some(&sandbox)).await;
            assert_eq!(errors["read"] == 0, is_reached, "{sandbox:?}, user {user:?}");
            let confinement =
                Confinement::new(ResourceLimits::default(), Some(&sandbox), outside.dir.path());
            let problems = confinement.unapplied_settings(&supervisor);
            assert_eq!(problems.is_empty(), is_reached, "{problems:?}");
        }
    }
}

/// Attack: sandbox | a sandboxed server of root uses its capabilities | seven capabilities remain,
/// none over the machine | Confinement holds
#[tokio::test]
async fn a_sandbox_of_root_has_no_capability_over_the_machine() {
    let tag = ProcessTag::new();
    let script = "my ($head, $sets) = (pack('LL', 0x20080522, 0), \"\\0\" x 24);
        syscall(CAPGET, $head, $sets); printf '%x', unpack('L', $sets)";
    let script = script.replace("CAPGET", &libc::SYS_capget.to_string());
    let mut launch = tag.program("/usr/bin/perl", &["-e", &script]);
    let sandbox = SandboxConfig { network: true, ..SandboxConfig::default() };
    launch.confinement =
        Confinement::new(ResourceLimits::default(), Some(&sandbox), Path::new("/"));
    let (_process, mut pipes) = start(&launch).await;
    let effective = u64::from_str_radix(&read_output(&mut pipes).await, 16).unwrap();
    // DAC_OVERRIDE, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE, SYS_CHROOT.
    let allowed = [1, 4, 5, 6, 7, 10, 18].into_iter().map(|bit| 1_u64 << bit).sum::<u64>();
    let expected = if rustix::process::geteuid().is_root() { allowed } else { 0 };
    assert_eq!(effective & !allowed, 0, "{effective:x}");
    assert!(effective == expected || !rustix::process::geteuid().is_root(), "{effective:x}");
}

#[tokio::test]
async fn usual_programs_work_on_the_writable_paths_of_a_sandbox() {
    for (user, supervisor, _dir) in supervisors() {
        let outside = Outside::new(user);
        let tag = ProcessTag::new();
        let mut launch = tag.script(
            "set -e; touch a; chmod 755 a; cp -p a b; cp -a b c; mkdir d; install -m 644 a d/e
             tar cf t.tar a d; mkdir x; tar xf t.tar -C x; mv x y; nice -n 1 true; rm -r y; ls | tr '\\n' ' '",
        );
        launch.cwd = Some(outside.dir.path().join("inside"));
        let sandbox = SandboxConfig { write: vec![".".to_owned()], ..SandboxConfig::default() };
        let from = outside.dir.path().join("inside");
        launch.confinement = Confinement::new(ResourceLimits::default(), Some(&sandbox), &from);
        let (_process, mut pipes) = spawn(&launch, &supervisor, None).await.unwrap();
        let mut errors = String::new();
        let output = read_output(&mut pipes).await;
        let _ = pipes.stderr.read_to_string(&mut errors).await;
        assert_eq!(output, "a b c d t.tar ", "user {user:?}: {errors}");
    }
}

/// The rows of the page of the sandbox about what a sandbox does not do: the page may not promise
/// more.
/// Attack: sandbox | a sandboxed server tries each documented limitation and the access beside it |
/// the limitations are those of the page, and file content stays closed | Confinement holds
#[tokio::test]
async fn what_a_sandbox_does_not_do_is_visible_from_inside() {
    use std::os::unix::net::UnixListener;

    for (user, supervisor, _dir) in supervisors() {
        let outside = Outside::new(user);
        let path = |name: &str| outside.dir.path().join(name).to_str().unwrap().to_owned();
        let (file, socket) = (path("file"), path("socket"));
        std::os::unix::fs::symlink("target", path("link")).unwrap();
        let _listener = UnixListener::bind(&socket).unwrap();
        std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o666)).unwrap();
        let abstract_name = format!("innkeeper-{}", outside.victim.id());
        let address = <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&abstract_name);
        let _abstract = UnixListener::bind_addr(&address.unwrap()).unwrap();
        let attempts = [
            ("stat", format!("defined((stat('{file}'))[2])")),
            ("readlink", format!("defined(readlink('{}'))", path("link"))),
            (
                "inotify",
                format!(
                    "call({}, syscall({}, 0), '{file}', 2)",
                    libc::SYS_inotify_add_watch,
                    libc::SYS_inotify_init1,
                ),
            ),
            (
                "unix socket",
                format!(
                    "do {{ socket(my $s, 1, 1, 0); connect($s, pack('Sa*x', 1, '{socket}')) }}"
                ),
            ),
            (
                "abstract socket",
                format!(
                    "do {{ socket(my $s, 1, 1, 0); connect($s, pack('Sxa*', 1, '{abstract_name}')) }}"
                ),
            ),
            (
                "command line",
                format!("open(my $opened, '<', '/proc/{}/cmdline')", outside.victim.id()),
            ),
            ("read", format!("open(my $opened, '<', '{file}')")),
            ("write", format!("open(my $opened, '>>', '{file}')")),
            ("truncate", format!("truncate('{file}', 1)")),
            ("list", format!("opendir(my $opened, '{}')", path("inside"))),
            ("rename", format!("rename('{file}', '{file}-2')")),
            ("tcp", "socket(my $s, 2, 1, 0)".to_owned()),
        ];
        for network in [false, true] {
            let sandbox = SandboxConfig { network, ..SandboxConfig::default() };
            let errors = outside.run_attempts(&attempts, &supervisor, Some(&sandbox)).await;
            let reached = |name: &str| errors[name] == 0;
            for name in ["stat", "readlink", "inotify", "unix socket"] {
                assert!(reached(name), "{name}: {errors:?}, user {user:?}");
            }
            for name in ["read", "write", "truncate", "list", "rename"] {
                assert!(!reached(name), "{name}: {errors:?}, user {user:?}");
            }
            for name in ["tcp", "abstract socket"] {
                assert_eq!(reached(name), network, "{name}: {errors:?}, user {user:?}");
            }
            let is_root = user.is_none() && rustix::process::geteuid().is_root();
            assert_eq!(reached("command line"), !is_root, "{errors:?}, user {user:?}");
        }
    }
}
