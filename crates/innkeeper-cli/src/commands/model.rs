//! `model`: installs, lists and serves the local model.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::cli::{ModelCommand, ModelFetchArgs, ModelListArgs, ModelServeArgs};
use crate::context::{CommandContext, listen_for_signals};
use crate::exit::CliError;
use crate::model::{
    self, BUNDLES, DEFAULT_BUNDLE, FetchOutcome, FetchStage, InstalledModel, InstalledModelError,
    ModelBundle, ModelServer, Python,
};
use crate::output::{Output, Table};
use crate::signals::RunOutcome;

/// Interval between two frames of the spinner.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// Runs a subcommand of `model`.
pub(crate) async fn model(
    context: &mut CommandContext,
    command: ModelCommand,
) -> Result<(), CliError> {
    match command {
        ModelCommand::Fetch(args) => fetch(context, args).await,
        ModelCommand::List(args) => list(context, args),
        ModelCommand::Serve(args) => serve(context, args).await,
    }
}

async fn fetch(context: &mut CommandContext, args: ModelFetchArgs) -> Result<(), CliError> {
    let bundle = find_bundle(args.name.as_deref())?;
    let dir = models_dir(context, args.dir)?;
    model::check_supported()?;
    let signals = listen_for_signals(&mut context.signals, &mut context.output)?;
    let python = Python::find(&context.environment);
    let bar = FetchProgressBar::new(bundle);
    let done = signals
        .run_until_signal(model::fetch(bundle, &dir, python, &mut |stage| bar.update(stage)))
        .await;
    bar.finish();
    let (model, fetched) = match done {
        RunOutcome::Completed(Ok(FetchOutcome::Installed(model))) => (model, true),
        RunOutcome::Completed(Ok(FetchOutcome::AlreadyInstalled(model))) => (model, false),
        RunOutcome::Completed(Err(error)) => return Err(error.into()),
        RunOutcome::Interrupted(signal) => return Err(CliError::from_signal(signal)),
    };
    print_fetched(&model, fetched, &mut context.output)
}

fn print_fetched(
    model: &InstalledModel,
    fetched: bool,
    output: &mut Output,
) -> Result<(), CliError> {
    if output.is_json() {
        return Ok(output.print_json(&json!({
            "name": model.name(),
            "path": model.weights_path(),
            "server": model.server_path(),
            "bytes": model.total_bytes(),
            "fetched": fetched,
            "licences": licences_json(model),
        }))?);
    }
    for (licence, text) in model.licences() {
        output.status(&format!(
            "{}: {}, `{}`",
            licence.subject,
            licence.spdx_id,
            text.display()
        ))?;
    }
    let name = model.name();
    let weights = model.weights_path();
    let how = if fetched { "is installed" } else { "is already installed" };
    output.status(&format!("`{name}` {how}; run `innkeeper model serve` to serve it"))?;
    Ok(output.print_data(&weights.display().to_string())?)
}

fn licences_json(model: &InstalledModel) -> Vec<Value> {
    let licences = model.licences();
    licences.map(|(licence, text)| json!({ "of": licence.subject, "licence": licence.spdx_id, "text": text }))
        .collect()
}

fn list(context: &mut CommandContext, args: ModelListArgs) -> Result<(), CliError> {
    let dir = models_dir(context, args.dir)?;
    let mut models = Vec::new();
    let mut table =
        Table::new(["model", "state", "download", "on disk", "licences", "description"]);
    for bundle in BUNDLES {
        let (state, model) = match InstalledModel::open(bundle, &dir) {
            Ok(Some(model)) => ("in place", Some(model)),
            Ok(None) => ("can be fetched", None),
            Err(InstalledModelError::Damaged { .. }) => ("damaged", None),
        };
        let disk = model.as_ref().map(InstalledModel::total_bytes);
        let mut ids: Vec<&str> = bundle.licences().map(|licence| licence.spdx_id).collect();
        ids.sort_unstable();
        ids.dedup();
        let download = megabytes(bundle.download_bytes());
        let on_disk = disk.map(megabytes).unwrap_or_default();
        table.add_row([
            bundle.name,
            state,
            &download,
            &on_disk,
            &ids.join(", "),
            bundle.description,
        ]);
        let texts = model.as_ref().map(licences_json);
        models.push(json!({
            "name": bundle.name,
            "about": bundle.description,
            "state": state,
            "path": model.as_ref().map(InstalledModel::weights_path),
            "server": model.as_ref().map(InstalledModel::server_path),
            "downloadBytes": bundle.download_bytes(),
            "bytes": disk,
            "licences": texts.unwrap_or_else(|| {
            bundle
                .licences()
                .map(|item| json!({ "of": item.subject, "licence": item.spdx_id }))
                .collect::<Vec<_>>()
        }),
        }));
    }
    if context.output.is_json() {
        return Ok(context.output.print_json(&models)?);
    }
    Ok(context.output.print_table(&table)?)
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

async fn serve(context: &mut CommandContext, args: ModelServeArgs) -> Result<(), CliError> {
    let bundle = find_bundle(args.name.as_deref())?;
    let dir = models_dir(context, args.dir)?;
    let Some(model) = InstalledModel::open(bundle, &dir)? else {
        return Err(CliError::failure(format!("the model `{}` is not installed", bundle.name))
            .with_hint("run `innkeeper model fetch` to install the model"));
    };
    let signals = listen_for_signals(&mut context.signals, &mut context.output)?;
    let mut server = match signals.run_until_signal(model.serve(args.port)).await {
        RunOutcome::Completed(server) => server?,
        RunOutcome::Interrupted(signal) => return Err(CliError::from_signal(signal)),
    };
    print_serving(&server, &mut context.output)?;
    match signals.run_until_signal(server.wait()).await {
        RunOutcome::Completed(error) => Err(error.into()),
        RunOutcome::Interrupted(signal) => {
            let stopped = server.stop().await;
            stopped.map_err(|error| {
                CliError::failure("cannot stop the model server").with_source(error)
            })?;
            Err(CliError::from_signal(signal))
        }
    }
}

fn print_serving(server: &ModelServer, output: &mut Output) -> Result<(), CliError> {
    let url = server.base_url();
    let name = server.model_name();
    if output.is_json() {
        let description = json!({ "name": name, "baseUrl": url, "pid": server.pid() });
        return Ok(output.print_json(&description)?);
    }
    output.print_data(&url)?;
    Ok(output
        .status(&format!("`{name}` is ready (OpenAI-compatible API); press Ctrl-C to stop"))?)
}

/// Returns the bundle with this name, or the default bundle.
fn find_bundle(name: Option<&str>) -> Result<&'static ModelBundle, CliError> {
    let Some(name) = name else { return Ok(&DEFAULT_BUNDLE) };
    BUNDLES.into_iter().find(|bundle| bundle.name == name).ok_or_else(|| {
        let names: Vec<_> = BUNDLES.iter().map(|bundle| format!("`{}`", bundle.name)).collect();
        CliError::usage(format!("unknown model `{name}`"))
            .with_hint(format!("use one of {}", names.join(", ")))
    })
}

/// Returns the given directory, or the default model directory.
fn models_dir(context: &CommandContext, explicit: Option<PathBuf>) -> Result<PathBuf, CliError> {
    explicit
        .or_else(|| model::default_models_dir(&context.environment))
        .map(to_absolute)
        .ok_or_else(|| {
            let unset = "neither `XDG_DATA_HOME` nor `HOME` is set to an absolute path";
            CliError::usage(format!("no model directory: {unset}")).with_hint("use `--dir DIR`")
        })
}

/// Makes a path absolute, so that the printed path is valid in every directory.
fn to_absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// Progress of a fetch on a terminal; shows nothing without a terminal.
struct FetchProgressBar(ProgressBar);

impl FetchProgressBar {
    /// Creates the bar; `indicatif` hides the bar if stderr is not a terminal.
    fn new(bundle: &ModelBundle) -> Self {
        let bar = ProgressBar::new(bundle.download_bytes());
        let form = "{spinner} {msg}  {bytes} of {total_bytes}  {wide_bar}";
        if let Ok(style) = ProgressStyle::with_template(form) {
            bar.set_style(style);
        }
        bar.set_message("starting");
        bar.enable_steady_tick(SPINNER_INTERVAL);
        Self(bar)
    }

    fn update(&self, stage: FetchStage) {
        match stage {
            FetchStage::Downloading { bytes } => {
                self.0.set_message("downloading");
                self.0.set_position(bytes);
            }
            FetchStage::Checking => {
                self.0.set_position(self.0.length().unwrap_or_default());
                self.0.set_message("checking");
            }
            FetchStage::Unpacking => self.0.set_message("unpacking"),
        }
    }

    fn finish(self) {
        self.0.finish_and_clear();
    }
}
