//! A golden has the same result wherever the bytes of the model are cut.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use futures_util::stream::{self, StreamExt as _};
use innkeeper_agent::golden::{
    Chunk, ChunkData, Golden, HttpResponseRecord, ReplyRecord, differences, is_varying_in_output,
    replay,
};
use innkeeper_testkit::ScriptedReply;

use super::{WIRES, record};

/// Size from which a body is cut at random positions only.
const LARGE_BODY_BYTES: usize = 64 << 10;

/// Number of cuts of a large body.
const LARGE_BODY_CUTS: usize = 1000;

/// Distance of the cuts in one replay. A replay with a cut at each byte needs as many replays as an
/// event has bytes; a long event is cut at several of them in one replay.
const CUT_DISTANCE: usize = 80;

/// Number of replays at the same time.
const CONCURRENT_REPLAYS: usize = 2;

/// Returns the goldens of the repository.
fn library() -> Vec<(PathBuf, Golden)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens");
    let mut goldens = Vec::new();
    for provider in ["openai", "anthropic", "gemini", "ollama"] {
        for file in std::fs::read_dir(root.join(provider)).unwrap() {
            let file = file.unwrap().path();
            let text = std::fs::read_to_string(&file).unwrap();
            goldens.push((file, Golden::from_json(&text).unwrap()));
        }
    }
    goldens
}

fn responses(golden: &mut Golden) -> impl Iterator<Item = &mut HttpResponseRecord> {
    golden.provider_responses.iter_mut().filter_map(|exchange| match &mut exchange.response {
        ReplyRecord::Http(response) => Some(response),
        ReplyRecord::Failed { .. } | ReplyRecord::Silent {} => None,
    })
}

/// Returns the bodies of the responses.
fn bodies(golden: &Golden) -> Vec<Vec<u8>> {
    let body = |response: &mut HttpResponseRecord| {
        let bytes = response.chunks.iter().map(|chunk| chunk.data.to_bytes().unwrap());
        bytes.collect::<Vec<_>>().concat()
    };
    responses(&mut golden.clone()).map(body).collect()
}

/// Returns the golden with each body cut at its positions.
fn recut(golden: &Golden, bodies: &[Vec<u8>], cuts: &[BTreeSet<usize>]) -> Golden {
    let mut golden = golden.clone();
    for ((response, body), cuts) in responses(&mut golden).zip(bodies).zip(cuts) {
        let ms = response.chunks.last().map_or(0, |chunk| chunk.ms);
        let ends = cuts.iter().copied().chain([body.len()]);
        let mut begin = 0;
        response.chunks.clear();
        for end in ends {
            let data = ChunkData::from_bytes(&body[begin..end]);
            response.chunks.push(Chunk { ms, data });
            begin = end;
        }
    }
    golden
}

/// Returns the events of a body: what ends with an empty line, or else each line.
fn events(body: &[u8]) -> Vec<Range<usize>> {
    let text = String::from_utf8_lossy(body).replace('\r', "\n");
    assert_eq!(text.len(), body.len(), "a body is text");
    let has_empty_lines = text.contains("\n\n");
    let mut events = Vec::new();
    let (mut begin, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        at += line.len();
        if !has_empty_lines || line == "\n" {
            events.push(begin..at);
            begin = at;
        }
    }
    events.push(begin..at);
    events.retain(|event| !event.is_empty());
    events
}

/// Returns the cuts of a body in the replay with this number: at one byte of each event, and again
/// after each [`CUT_DISTANCE`] bytes of it.
fn cuts_of_events(body: &[u8], number: usize) -> BTreeSet<usize> {
    let cuts = |event: Range<usize>| {
        let first = event.start + number % event.len().min(CUT_DISTANCE);
        (first..event.end).step_by(CUT_DISTANCE)
    };
    events(body).into_iter().flat_map(cuts).filter(|at| *at > 0).collect()
}

/// Replays a golden with each of these cuts of its bodies; all must have the recorded result. Returns
/// the number of different cuts.
async fn assert_same_result(name: &str, golden: &Golden, cuts: &[Vec<BTreeSet<usize>>]) -> usize {
    let bodies = bodies(golden);
    let whole = recut(golden, &bodies, &vec![BTreeSet::new(); bodies.len()]);
    let recorded = replay(golden).await.unwrap().golden.golden_output;
    let expected = replay(&whole).await.unwrap().golden.golden_output;
    let found = differences(&recorded, &expected, &is_varying_in_output, 5);
    assert!(found.is_empty(), "{name}, whole bodies: {found:?}");
    let replays = stream::iter(cuts.iter().enumerate()).map(|(number, cuts)| {
        let golden = recut(golden, &bodies, cuts);
        async move { (number, replay(&golden).await) }
    });
    let mut replays = replays.buffer_unordered(CONCURRENT_REPLAYS);
    while let Some((number, replayed)) = replays.next().await {
        let replayed = replayed.unwrap_or_else(|error| panic!("{name}, replay {number}: {error}"));
        let found =
            differences(&expected, &replayed.golden.golden_output, &is_varying_in_output, 5);
        assert!(found.is_empty(), "{name}, replay {number}: {found:?}");
    }
    let different: BTreeSet<(usize, usize)> = cuts
        .iter()
        .flat_map(|cuts| cuts.iter().enumerate())
        .flat_map(|(body, cuts)| cuts.iter().map(move |at| (body, *at)))
        .collect();
    different.len()
}

/// Some hundred thousand cuts in some thousand replays: each position of each body of the goldens.
///
/// Proves: G64
#[tokio::test]
async fn a_golden_cut_at_any_byte_of_any_event_has_the_same_result() {
    let (mut all_cuts, mut all_replays) = (0, 0);
    for (file, golden) in library() {
        let bodies = bodies(&golden);
        let longest = bodies.iter().flat_map(|body| events(body)).map(|event| event.len()).max();
        let numbers = 0..longest.unwrap().min(CUT_DISTANCE);
        let cuts: Vec<Vec<BTreeSet<usize>>> = numbers
            .map(|number| bodies.iter().map(|body| cuts_of_events(body, number)).collect())
            .collect();
        let different = assert_same_result(&file.display().to_string(), &golden, &cuts).await;
        assert!(bodies.iter().all(|body| body.len() < LARGE_BODY_BYTES), "{}", file.display());
        assert_eq!(different, bodies.iter().map(|body| body.len() - 1).sum::<usize>());
        all_cuts += different;
        all_replays += cuts.len();
    }
    assert!(all_cuts > 110_000 && all_replays < 1_500, "{all_cuts} cuts in {all_replays} replays");
}

/// Proves: G64
#[tokio::test]
async fn a_golden_cut_into_single_bytes_has_the_same_result() {
    for (file, golden) in library() {
        let cuts = bodies(&golden).iter().map(|body| (1..body.len()).collect()).collect();
        assert_same_result(&file.display().to_string(), &golden, &[cuts]).await;
    }
}

/// Proves: G64
#[tokio::test]
async fn a_large_body_cut_at_a_thousand_random_bytes_has_the_same_result() {
    let mut random = fastrand::Rng::with_seed(43);
    for wire in WIRES {
        let words = (0..).map(|number| format!("Wort{number} für ☕ "));
        let text: String = words.take(350).collect();
        let golden = record(wire, [ScriptedReply::text(text)], usize::MAX).await;
        let bodies = bodies(&golden);
        let body = bodies.iter().map(Vec::len).max().unwrap();
        assert!(body > LARGE_BODY_BYTES, "{wire:?}: {body}");
        let mut positions = BTreeSet::new();
        while positions.len() < LARGE_BODY_CUTS {
            positions.insert(random.usize(1..body));
        }
        let mut positions: Vec<usize> = positions.into_iter().collect();
        random.shuffle(&mut positions);
        let cuts: Vec<_> = positions
            .chunks(LARGE_BODY_CUTS / 4)
            .map(|cuts| vec![cuts.iter().copied().collect()])
            .collect();
        assert_eq!(assert_same_result(wire.1, &golden, &cuts).await, LARGE_BODY_CUTS);
    }
}
