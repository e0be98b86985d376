//! Collects the input of a tool or prompt, in the way of the server's era.

use futures_util::future::join_all;
use serde_json::{Map, Value, json};

use super::input::{InputPlan, InputRequest};
use super::message::{Era, META_CAPABILITIES, MISSING_CAPABILITY, Request, RpcError};
use super::peer::Peer;
use super::state::StateKey;

/// The responses by the keys of their requests.
pub(crate) type Responses = Map<String, Value>;

/// The input of a call, or the result that requests it.
#[derive(Debug)]
pub(crate) enum Input {
    Complete(Responses),
    Required(Value),
}

/// Collects the input of one call.
pub(crate) async fn collect(
    era: Era,
    peer: &Peer,
    key: &StateKey,
    request: &Request,
    plan: &InputPlan,
) -> Result<Input, RpcError> {
    match era {
        Era::Legacy => request_all(peer, plan).await.map(Input::Complete),
        Era::Modern => read_responses(key, request, plan),
    }
}

/// Requests the input of each round from the client, the requests of one round at once.
async fn request_all(peer: &Peer, plan: &InputPlan) -> Result<Responses, RpcError> {
    let mut responses = Responses::new();
    for round in &plan.rounds {
        let requests = round.iter().map(async |input| {
            (input.key, peer.request(input.key, input.kind.method(), &input.params).await)
        });
        for (key, outcome) in join_all(requests).await {
            match outcome {
                Ok(response) => drop(responses.insert(key.to_owned(), response)),
                Err(_) if plan.is_optional => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(responses)
}

/// Reads the responses in the request. Responses that are missing or invalid are requested again.
fn read_responses(key: &StateKey, request: &Request, plan: &InputPlan) -> Result<Input, RpcError> {
    let item = request.text("name");
    let mut round = 0;
    let mut responses = &request.params["inputResponses"];
    if plan.has_state {
        match request.params.get("requestState") {
            // Without its state, a call starts again.
            None => responses = &Value::Null,
            Some(state) => {
                let known = state.as_str().and_then(|state| key.round(item, state));
                round = known.ok_or_else(|| {
                    RpcError::invalid_params("`requestState` is not a state of this call")
                })?;
            }
        }
    }
    let mut inputs = askable(request, plan, round)?;
    let answered = |input: &&InputRequest| input.kind.accepts(&responses[input.key]);
    if inputs.iter().all(answered) {
        round += 1;
        if round == plan.rounds.len() {
            return Ok(Input::Complete(responses.as_object().cloned().unwrap_or_default()));
        }
        inputs = askable(request, plan, round)?;
    } else {
        inputs.retain(|input| !answered(input));
    }
    Ok(Input::Required(input_required(key, item, plan, round, &inputs)))
}

fn input_required(
    key: &StateKey,
    item: &str,
    plan: &InputPlan,
    round: usize,
    inputs: &[&InputRequest],
) -> Value {
    let requests: Map<_, _> = inputs
        .iter()
        .map(|input| {
            let request = json!({ "method": input.kind.method(), "params": input.params });
            (input.key.to_owned(), request)
        })
        .collect();
    let mut result = json!({ "resultType": "input_required", "inputRequests": requests });
    if plan.has_state {
        result["requestState"] = json!(key.state(item, round));
    }
    result
}

/// Returns the requests of a round that the client can answer. Returns an error if the client lacks
/// a required capability.
fn askable<'a>(
    request: &Request,
    plan: &'a InputPlan,
    round: usize,
) -> Result<Vec<&'a InputRequest>, RpcError> {
    let capabilities = request.meta(META_CAPABILITIES);
    let (askable, missing): (Vec<_>, Vec<_>) = plan.rounds[round]
        .iter()
        .partition(|input| capabilities[input.kind.capability()].is_object());
    if missing.is_empty() || plan.is_optional {
        return Ok(askable);
    }
    let missing: Map<_, _> =
        missing.iter().map(|input| (input.kind.capability().to_owned(), json!({}))).collect();
    Err(RpcError::new(MISSING_CAPABILITY, "the client lacks a required capability")
        .with_data(json!({ "requiredCapabilities": missing })))
}
