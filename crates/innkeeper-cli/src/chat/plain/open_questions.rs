//! The questions that wait for a line of a person, or for responses of a program.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;

use super::json_line::LineProblem;
use super::json_response;
use super::line_question::LineQuestion;
use crate::chat::question::Question;

#[derive(Debug, Default)]
pub(super) struct OpenQuestions {
    line: Option<LineQuestion>,
    /// The questions to a program, by their ids.
    by_id: BTreeMap<u64, Question>,
    /// The number of questions that a program has got.
    last_id: u64,
}

/// A question that nobody waits for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Withdrawn {
    Line,
    Id(u64),
}

impl OpenQuestions {
    pub(super) fn has_line(&self) -> bool {
        self.line.is_some()
    }

    pub(super) fn set_line(&mut self, question: LineQuestion) {
        self.line = Some(question);
    }

    /// Takes the question to a person.
    pub(super) fn take_line(&mut self) -> Option<LineQuestion> {
        self.line.take()
    }

    /// Returns the id of the next question to a program.
    pub(super) fn next_id(&self) -> u64 {
        self.last_id + 1
    }

    /// Opens a question to a program, with the id of [`Self::next_id`].
    pub(super) fn add(&mut self, question: Question) {
        self.last_id += 1;
        self.by_id.insert(self.last_id, question);
    }

    /// Withdraws all questions: the calls are denied.
    pub(super) fn clear(&mut self) {
        self.line = None;
        self.by_id.clear();
    }

    /// Waits until nobody waits for the answer of a question, and removes the question. A drop of the
    /// future changes nothing.
    pub(super) async fn withdrawn(&mut self) -> Withdrawn {
        let withdrawn = poll_fn(|context| {
            if self.line.as_mut().is_some_and(|line| line.poll_withdrawn(context).is_ready()) {
                return Poll::Ready(Withdrawn::Line);
            }
            for (id, question) in &mut self.by_id {
                if question.poll_withdrawn(context).is_ready() {
                    return Poll::Ready(Withdrawn::Id(*id));
                }
            }
            Poll::Pending
        })
        .await;
        match withdrawn {
            Withdrawn::Line => self.line = None,
            Withdrawn::Id(id) => drop(self.by_id.remove(&id)),
        }
        withdrawn
    }

    /// Answers the question with this id with the object of a line.
    pub(super) fn respond(&mut self, id: u64, line: &str) -> Result<(), LineProblem> {
        let problem = |text: String| LineProblem { id: Some(id), text };
        let question = match self.by_id.remove(&id) {
            Some(question) if question.is_withdrawn() => {
                // The event of the withdrawal follows.
                self.by_id.insert(id, question);
                return Err(problem(format!("question {id} was withdrawn")));
            }
            Some(question) => question,
            None if (1..=self.last_id).contains(&id) => {
                let text = format!("question {id} is answered or was withdrawn");
                return Err(problem(text));
            }
            None => return Err(problem(format!("no question {id}"))),
        };
        json_response::send_response(question, line).map_err(|error| {
            let (question, text) = *error;
            self.by_id.insert(id, question);
            problem(text)
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::sync::oneshot;

    use super::*;
    use crate::chat::question::SamplingQuestion;

    fn question() -> (Question, oneshot::Receiver<bool>) {
        let (reply, receiver) = oneshot::channel();
        let question = SamplingQuestion {
            server: "one".to_owned(),
            call: None,
            model: "m".to_owned(),
            messages: Vec::new(),
            max_tokens: 1,
        };
        (Question::Sampling(question, reply), receiver)
    }

    fn response(id: u64, decision: &str) -> String {
        format!(r#"{{"type":"response","id":{id},"decision":"{decision}"}}"#)
    }

    #[test]
    fn each_response_answers_the_question_of_its_id_once() {
        let mut questions = OpenQuestions::default();
        let [(first, mut first_answer), (second, mut second_answer)] = [question(), question()];
        questions.add(first);
        questions.add(second);
        let problem = |result: Result<(), LineProblem>| result.unwrap_err().text;
        assert_eq!(problem(questions.respond(3, &response(3, "allow"))), "no question 3");
        assert_eq!(problem(questions.respond(0, &response(0, "allow"))), "no question 0");
        questions.respond(2, &response(2, "allow")).unwrap();
        assert!(first_answer.try_recv().is_err() && second_answer.try_recv().unwrap());
        let again = problem(questions.respond(2, &response(2, "allow")));
        assert_eq!(again, "question 2 is answered or was withdrawn");
        assert!(problem(questions.respond(1, &response(1, "maybe"))).contains("maybe"));
        questions.respond(1, &response(1, "deny")).unwrap();
        assert_eq!(first_answer.try_recv(), Ok(false));
    }

    #[test]
    fn a_withdrawn_question_is_removed_and_a_late_response_has_a_problem() {
        let mut questions = OpenQuestions::default();
        let [(first, first_answer), (second, _second_answer)] = [question(), question()];
        questions.add(first);
        questions.add(second);
        assert_eq!(questions.withdrawn().now_or_never(), None);
        drop(first_answer);
        let late = questions.respond(1, &response(1, "allow")).unwrap_err();
        assert_eq!((late.id, &*late.text), (Some(1), "question 1 was withdrawn"));
        assert_eq!(questions.withdrawn().now_or_never(), Some(Withdrawn::Id(1)));
        assert_eq!(questions.withdrawn().now_or_never(), None);
        let (line, line_answer) = question();
        questions.set_line(LineQuestion::new(line));
        drop(line_answer);
        assert_eq!(questions.withdrawn().now_or_never(), Some(Withdrawn::Line));
        assert!(!questions.has_line());
    }
}
