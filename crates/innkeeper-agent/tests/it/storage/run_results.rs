//! Results and statistics of runs are read back equal.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_agent::agent::{
    CALL_ORIGINS, CallStatistics, RunResult, Statistics, ToolCallAttempts, ToolCallOutcome,
    ToolCallRecord,
};
use innkeeper_agent::provider::{LlmError, LlmErrorKind};
use innkeeper_agent::run::{
    CorrectionExample, ErrorRecord, IterationUsage, RecoveryAction, RunOutcome, RunStats,
    ToolCallMode,
};
use innkeeper_agent::tools::ToolOutput;
use innkeeper_toolcall::Json;
use innkeeper_toolcall::prompt::FailedAttempt;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use super::{raw_json, read_back, text, usage};

/// A cause with a cause of its own.
#[derive(Debug)]
struct Cause(String, Option<Box<Self>>);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.1.as_deref().map(|cause| cause as &(dyn Error + 'static))
    }
}

fn error_kind() -> impl Strategy<Value = LlmErrorKind> {
    let without_fields = vec![
        LlmErrorKind::Connection,
        LlmErrorKind::TimedOut,
        LlmErrorKind::Authentication,
        LlmErrorKind::Billing,
        LlmErrorKind::NotFound,
        LlmErrorKind::ContextLength,
        LlmErrorKind::ToolsUnsupported,
        LlmErrorKind::MalformedToolCall,
        LlmErrorKind::Refusal,
        LlmErrorKind::InvalidRequest,
        LlmErrorKind::InvalidResponse,
    ];
    prop_oneof![
        prop::sample::select(without_fields),
        option::of(any::<Duration>()).prop_map(|after| LlmErrorKind::RetryLater { after }),
        any::<Duration>().prop_map(|after| LlmErrorKind::LocalRateLimit { after }),
    ]
}

prop_compose! {
    fn error()(
        provider in text(),
        model in text(),
        kind in error_kind(),
        status in option::of(any::<u16>()),
        message in text(),
        partial_output in option::of(text()),
        causes in vec(text(), 0..4),
    ) -> LlmError {
        let cause = causes.into_iter().fold(None, |cause, text| Some(Box::new(Cause(text, cause))));
        LlmError {
            provider,
            model: model.into(),
            kind,
            status,
            message: message.into(),
            partial_output: partial_output.map(Into::into),
            source: cause.map(|cause| cause as Box<dyn Error + Send + Sync>),
        }
    }
}

fn outcome() -> impl Strategy<Value = RunOutcome> {
    let attempt = (text(), option::of(text()))
        .prop_map(|(problem, suggestion)| FailedAttempt { problem, suggestion });
    prop_oneof![
        Just(()).prop_map(|()| RunOutcome::Completed),
        Just(()).prop_map(|()| RunOutcome::Truncated),
        Just(()).prop_map(|()| RunOutcome::Refused),
        Just(()).prop_map(|()| RunOutcome::IterationLimit),
        Just(()).prop_map(|()| RunOutcome::CallFailed),
        Just(()).prop_map(|()| RunOutcome::LoopDetected),
        vec(attempt, 0..3).prop_map(|attempts| RunOutcome::NoValidCall { attempts }),
        error().prop_map(RunOutcome::Failed),
        text().prop_map(|reason| RunOutcome::NotSent { reason }),
    ]
}

/// Arguments as a model writes them, with numbers that no 64-bit type holds.
fn arguments() -> impl Strategy<Value = Json> {
    let numbers = ["0", "-0", "1.50", "1e400", "123456789012345678901234567890"];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        prop::sample::select(numbers.to_vec()).prop_map(|number| Json::Number(number.to_owned())),
        text().prop_map(Json::String),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Json::Array),
            btree_map(text(), inner, 0..3)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

prop_compose! {
    fn record()(
        numbers in any::<[u32; 3]>(),
        texts in [text(), text(), text(), text()],
        arguments in arguments(),
        output in option::of((raw_json(), any::<bool>())),
        flags in any::<[bool; 3]>(),
        elapsed in any::<Duration>(),
        origin in prop::sample::select(CALL_ORIGINS.to_vec()),
        visible_results in vec(text(), 0..3),
    ) -> ToolCallRecord {
        let [id, tool, result_text, reasoning] = texts;
        ToolCallRecord {
            iteration: numbers[0],
            id,
            tool,
            arguments,
            output: output.map(|(raw, is_error)| ToolOutput::new(raw, is_error)),
            outcome: ToolCallOutcome {
                success: flags[0],
                was_run: flags[2],
                rejected: flags[0] && !flags[1],
                outcome_unknown: numbers[2].is_multiple_of(2),
                cached: flags[1],
            },
            result_text,
            elapsed,
            origin,
            attempts: ToolCallAttempts { failed_attempts: numbers[1], retry_attempt: numbers[2] },
            reasoning,
            visible_results: visible_results.into(),
        }
    }
}

prop_compose! {
    fn iteration_usage()(usage in usage(), is_complete in any::<bool>()) -> IterationUsage {
        IterationUsage { usage, is_complete }
    }
}

prop_compose! {
    fn stats()(
        counts in any::<[u32; 6]>(),
        failures in btree_map(text().prop_map(Cow::Owned), any::<u32>(), 0..3),
        usage in usage(),
        usage_is_complete in any::<bool>(),
        usage_by_iteration in vec(iteration_usage(), 0..3),
    ) -> RunStats {
        let [iterations, requests, responses, summaries, request_retries, corrections] = counts;
        RunStats {
            iterations,
            requests,
            responses,
            summaries,
            request_retries,
            corrections,
            failures,
            usage,
            usage_is_complete,
            usage_by_iteration,
        }
    }
}

prop_compose! {
    fn error_record()(
        iteration in any::<u32>(),
        tool in option::of(text()),
        call_id in option::of(text()),
        error in text(),
        recovery_action in option::of(prop::sample::select(vec![
            RecoveryAction::OtherArguments,
            RecoveryAction::SameCall,
            RecoveryAction::OtherTool,
            RecoveryAction::SeveralCalls,
            RecoveryAction::Question,
        ])),
    ) -> ErrorRecord {
        ErrorRecord { iteration, tool, call_id, error, recovery_action }
    }
}

prop_compose! {
    fn result()(
        outcome in outcome(),
        text in text(),
        tool_calls in vec(record().prop_map(Arc::new), 0..3),
        stats in stats(),
        tool_call_mode in option::of(
            prop::sample::select(vec![ToolCallMode::Native, ToolCallMode::Prompt])
        ),
        correction_examples in vec(correction_example(), 0..3),
        errors in vec(error_record(), 0..3),
        elapsed in any::<Duration>(),
    ) -> RunResult {
        RunResult {
            outcome,
            text,
            tool_calls,
            errors,
            stats,
            tool_call_mode,
            correction_examples,
            elapsed,
        }
    }
}

prop_compose! {
    fn correction_example()(
        user_message in text(),
        attempts in vec((text(), text()), 0..3),
        corrected_text in text(),
    ) -> CorrectionExample {
        CorrectionExample { user_message, attempts, corrected_text }
    }
}

prop_compose! {
    fn statistics()(
        counts in any::<[u64; 8]>(),
        by_origin in any::<[u64; 5]>(),
        failures in btree_map(text().prop_map(Cow::Owned), any::<u64>(), 0..3),
    ) -> Statistics {
        let [
            runs,
            succeeded,
            count,
            first_attempt,
            retries,
            corrections,
            request_retries,
            given_up,
        ] = counts;
        Statistics {
            runs,
            succeeded,
            calls: CallStatistics { count, first_attempt, by_origin, retries },
            corrections,
            request_retries,
            given_up,
            failures,
        }
    }
}

proptest! {
    #[test]
    fn every_result_of_a_run_is_read_back_equal(result in result()) {
        let read = read_back(&result);
        prop_assert_eq!(&read, &result);
        if let (RunOutcome::Failed(read), RunOutcome::Failed(error)) =
            (&read.outcome, &result.outcome)
        {
            prop_assert_eq!(read.to_string(), error.to_string());
        }
    }

    #[test]
    fn all_statistics_of_an_agent_are_read_back_equal(statistics in statistics()) {
        prop_assert_eq!(read_back(&statistics), statistics);
    }
}
