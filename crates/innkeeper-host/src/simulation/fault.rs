//! What a server of the simulation does wrong with one request.

/// One way to treat a request badly, or only oddly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It answers late, and still in time.
    Slow,
    /// It never answers.
    Silent,
    /// It answers when nobody waits any more.
    Late,
    /// It answers twice.
    Twice,
    /// It answers a request that nobody made, then the right one.
    Stranger,
    /// It says what is no message, then answers.
    Garbage,
    /// Its answer is neither result nor error.
    Malformed,
    /// It says bytes that are no text, then answers.
    NoText,
    /// Its answer comes in many small pieces.
    Pieces,
    /// Its answer comes together with those to later requests, the last one first.
    Joined,
    /// It ends before it has done anything.
    CrashBefore,
    /// It does what it was asked for and ends without an answer.
    CrashAfter,
    /// It answers and reads nothing from then on.
    Deaf,
    /// It closes its output and lives on.
    Closed,
    /// It says again and again that its lists have changed, then answers.
    Storm,
    /// Its answer is longer than a line may be.
    Huge,
    /// It answers with an error.
    Error,
    /// It tells how far it is for longer than its time-out, then answers.
    Progress,
    /// It asks the application for something, then answers.
    Asks,
    /// It reports that the tool failed.
    ToolError,
    /// The request does not reach it, and a remote host knows.
    Unreached,
    /// The connection breaks after the request reached it, for this request alone.
    Broken,
    /// It writes rubbish until it is not listened to any more.
    Flood,
}

impl Fault {
    /// All there are; those that are the end of a server are among many that are not.
    const ALL: [Self; 32] = [
        Self::Slow,
        Self::Slow,
        Self::Silent,
        Self::Late,
        Self::Late,
        Self::Twice,
        Self::Twice,
        Self::Stranger,
        Self::Stranger,
        Self::Garbage,
        Self::Garbage,
        Self::Malformed,
        Self::NoText,
        Self::NoText,
        Self::Pieces,
        Self::Pieces,
        Self::Joined,
        Self::Joined,
        Self::CrashBefore,
        Self::CrashAfter,
        Self::Deaf,
        Self::Closed,
        Self::Storm,
        Self::Huge,
        Self::Error,
        Self::Progress,
        Self::Asks,
        Self::ToolError,
        Self::Unreached,
        Self::Unreached,
        Self::Broken,
        Self::Flood,
    ];

    /// One of them by chance.
    pub(super) fn pick(rng: &mut fastrand::Rng) -> Self {
        Self::ALL[rng.usize(..Self::ALL.len())]
    }
}
