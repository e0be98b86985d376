//! `model`: the small local model put in place, listed, served.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::{Context, listen};
use crate::args::{ModelFetchArgs, ModelListArgs, ModelServeArgs, ModelVerb};
use crate::exit::Failure;
use crate::model::{
    self, DEFAULT, Fetched, InstalledError, Model, OFFERS, Offer, Python, Serving, Step,
};
use crate::output::{Output, Table};
use crate::signals::Ended;

/// How often the spinner turns.
const TURN: Duration = Duration::from_millis(100);

/// Runs one of the three.
pub(crate) async fn model(context: &mut Context, verb: ModelVerb) -> Result<(), Failure> {
    match verb {
        ModelVerb::Fetch(args) => fetch(context, args).await,
        ModelVerb::List(args) => list(context, args),
        ModelVerb::Serve(args) => serve(context, args).await,
    }
}

async fn fetch(context: &mut Context, args: ModelFetchArgs) -> Result<(), Failure> {
    let (offer, dir) = (offer(args.name.as_deref())?, dir(context, args.dir)?);
    model::able()?;
    let signals = listen(&mut context.signals, &mut context.output)?;
    let python = Python::find(&context.environment);
    let bar = Bar::new(offer);
    let mut seen = |step| bar.show(step);
    let done = signals.guard(model::fetch(offer, &dir, python, &mut seen)).await;
    bar.end();
    let (model, fetched) = match done {
        Ended::Done(Ok(Fetched::Now(model))) => (model, true),
        Ended::Done(Ok(Fetched::Before(model))) => (model, false),
        Ended::Done(Err(error)) => return Err(error.into()),
        Ended::Cut(signal) => return Err(Failure::signalled(signal)),
    };
    tell(&model, fetched, &mut context.output)
}

fn tell(model: &Model, fetched: bool, output: &mut Output) -> Result<(), Failure> {
    if output.is_json() {
        return Ok(output.value(&json!({
            "name": model.name(),
            "path": model.weights(),
            "server": model.program(),
            "bytes": model.bytes(),
            "fetched": fetched,
            "licences": licences(model),
        }))?);
    }
    for (licence, text) in model.licences() {
        output.say(&format!("{}: {}, `{}`", licence.of, licence.id, text.display()))?;
    }
    let (name, weights) = (model.name(), model.weights());
    let how = if fetched { "is in place" } else { "is there already" };
    output.say(&format!("`{name}` {how}; `innkeeper model serve` serves it"))?;
    Ok(output.data(&weights.display().to_string())?)
}

fn licences(model: &Model) -> Vec<Value> {
    let told = model.licences();
    told.map(|(licence, text)| json!({ "of": licence.of, "licence": licence.id, "text": text }))
        .collect()
}

fn list(context: &mut Context, args: ModelListArgs) -> Result<(), Failure> {
    let dir = dir(context, args.dir)?;
    let mut told = Vec::new();
    let mut table = Table::new(["model", "state", "download", "on disk", "licences", "what"]);
    for offer in OFFERS {
        let (state, model) = match Model::of(offer, &dir) {
            Ok(Some(model)) => ("in place", Some(model)),
            Ok(None) => ("can be fetched", None),
            Err(InstalledError::Damaged { .. }) => ("damaged", None),
        };
        let disk = model.as_ref().map(Model::bytes);
        let mut ids: Vec<&str> = offer.licences().map(|licence| licence.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let mb = |bytes: u64| format!("{} MB", bytes.div_ceil(1_000_000));
        let (download, on_disk) = (mb(offer.download()), disk.map(mb).unwrap_or_default());
        table.row([offer.name, state, &download, &on_disk, &ids.join(", "), offer.about]);
        let texts = model.as_ref().map(licences);
        let ids = || {
            offer.licences().map(|it| json!({ "of": it.of, "licence": it.id })).collect::<Vec<_>>()
        };
        told.push(json!({
            "name": offer.name,
            "about": offer.about,
            "state": state,
            "path": model.as_ref().map(Model::weights),
            "server": model.as_ref().map(Model::program),
            "downloadBytes": offer.download(),
            "bytes": disk,
            "licences": texts.unwrap_or_else(ids),
        }));
    }
    if context.output.is_json() {
        return Ok(context.output.value(&told)?);
    }
    Ok(context.output.table(&table)?)
}

async fn serve(context: &mut Context, args: ModelServeArgs) -> Result<(), Failure> {
    let (offer, dir) = (offer(args.name.as_deref())?, dir(context, args.dir)?);
    let Some(model) = Model::of(offer, &dir)? else {
        return Err(Failure::failed(format!("the model `{}` is not in place", offer.name))
            .hint("`innkeeper model fetch` gets it"));
    };
    let signals = listen(&mut context.signals, &mut context.output)?;
    let mut serving = match signals.guard(model.serve(args.port)).await {
        Ended::Done(serving) => serving?,
        Ended::Cut(signal) => return Err(Failure::signalled(signal)),
    };
    said(&serving, &mut context.output)?;
    match signals.guard(serving.ended()).await {
        Ended::Done(error) => Err(error.into()),
        Ended::Cut(signal) => {
            let stopped = serving.stop().await;
            stopped
                .map_err(|error| Failure::failed("the server cannot be ended").because(error))?;
            Err(Failure::signalled(signal))
        }
    }
}

fn said(serving: &Serving, output: &mut Output) -> Result<(), Failure> {
    let (url, name) = (serving.base_url(), serving.model_name());
    if output.is_json() {
        let told = json!({ "name": name, "baseUrl": url, "pid": serving.pid() });
        return Ok(output.value(&told)?);
    }
    output.data(&url)?;
    Ok(output.say(&format!(
        "`{name}` takes requests there, as an OpenAI-compatible service; Ctrl-C ends it"
    ))?)
}

/// The model of a name.
fn offer(name: Option<&str>) -> Result<&'static Offer, Failure> {
    let Some(name) = name else { return Ok(&DEFAULT) };
    OFFERS.into_iter().find(|offer| offer.name == name).ok_or_else(|| {
        let known: Vec<_> = OFFERS.iter().map(|offer| format!("`{}`", offer.name)).collect();
        Failure::usage(format!("no model is called `{name}`"))
            .hint(format!("there is {}", known.join(", ")))
    })
}

/// The named folder, or the one where models are kept.
fn dir(context: &Context, named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    named.or_else(|| model::place(&context.environment)).map(absolute).ok_or_else(|| {
        let unset = "neither `XDG_DATA_HOME` nor `HOME` is set to an absolute path";
        Failure::usage(format!("no folder for models is known: {unset}"))
            .hint("`--dir DIR` names one")
    })
}

/// What is printed can be used from anywhere.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// What is done, on a terminal, and nothing elsewhere.
struct Bar(ProgressBar);

impl Bar {
    /// `indicatif` hides what is not shown to a terminal.
    fn new(offer: &Offer) -> Self {
        let bar = ProgressBar::new(offer.download());
        let form = "{spinner} {msg}  {bytes} of {total_bytes}  {wide_bar}";
        if let Ok(style) = ProgressStyle::with_template(form) {
            bar.set_style(style);
        }
        bar.set_message("starting");
        bar.enable_steady_tick(TURN);
        Self(bar)
    }

    fn show(&self, step: Step) {
        match step {
            Step::Downloading { bytes } => {
                self.0.set_message("downloading");
                self.0.set_position(bytes);
            }
            Step::Checking => {
                self.0.set_position(self.0.length().unwrap_or_default());
                self.0.set_message("checking");
            }
            Step::Unpacking => self.0.set_message("unpacking"),
        }
    }

    fn end(self) {
        self.0.finish_and_clear();
    }
}
