//! The search for poison: which rows and timers of a step make its processor fail, whatever else it is given.
//!
//! A share of a worker that failed is tried again without effect, in parts. The search begins at the keys that the failure
//! names; where it names several or none, halves are tried. A key that fails alone, on the state before the batch, has
//! poison: the row with which a beginning of the key's rows fails that passes without it. Without that row the key is tried
//! on, until it fails no more. Timers are searched in the same way once all rows pass, in the order in which they fire. What
//! fails only together with other keys, or not again, is no poison, and neither is anything that the host or a wall clock
//! stops: it fails the batch.
//!
//! What was found goes into the commit record, so nothing of this has to be found again.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use tracing::subscriber::{NoSubscriber, with_default};

use super::commit::SkippedTimer;
use super::dead_letters::{DeadLetter, DeadOf, skipped};
use super::error::QueryError;
use super::faults;
use super::held::held_row;
use super::operator::{AtKey, Handler, OperatorError};
use super::pipeline::{Attempt, BatchWork, Done, DueTimers, Fires, Pipeline, Runs, Share};
use super::route::{KeyRows, Routed, Row};
use super::settings::{AfterPoison, PoisonLimits};
use super::suspects;
use crate::clock::Stopwatch;
use crate::state::{DueIndex, Store};

/// Keys that are tried together after one had poison, twice as many after each time that none had: little is done again
/// where poison is dense, and few runs suffice where it is rare.
const KEYS_TOGETHER: usize = 256;

/// A step of a batch in which poison is left out.
pub(super) struct Step<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) store: &'a Arc<dyn Store>,
    pub(super) due: &'a Arc<DueIndex>,
    pub(super) work: &'a BatchWork,
    /// Its input.
    pub(super) rows: &'a [RecordBatch],
    /// Rows of it that are left out anyway.
    pub(super) held: &'a [u64],
    pub(super) after_poison: AfterPoison,
    pub(super) limits: PoisonLimits,
    /// Dead letters that the batch may still have.
    pub(super) letters_max: u64,
}

/// Runs every share as [`Pipeline::process`] does, those with poison without it.
///
/// # Errors
/// A failure that is not of single rows or timers; `POISON_SEARCH_EXHAUSTED`, `POISON_LIMIT_EXCEEDED`.
pub(super) fn process(step: &Step<'_>, shares: Vec<Share>) -> Result<(Vec<Done>, Vec<DeadLetter>), QueryError> {
    let Step { pipeline, store, due, work, rows, .. } = step;
    let places: Vec<_> = shares.iter().map(|share| share.key_groups.clone()).collect();
    let outcomes = pipeline.run_shares(store, due, work, shares);
    if outcomes.iter().all(Result::is_ok) {
        return Ok((outcomes.into_iter().collect::<Result<_, _>>()?, Vec::new()));
    }
    let searched = || {
        let is_hopeless = |outcome: &Result<_, _>| outcome.as_ref().is_err_and(|failure| handler(failure).is_none());
        if outcomes.iter().any(is_hopeless) {
            return outcomes.into_iter().filter(is_hopeless).collect::<Result<_, _>>().map(|done| (done, Vec::new()));
        }
        let mut routed = pipeline.route(rows, work, &[])?;
        routed.leave_out(step.held);
        let mut search = Search {
            step,
            routed: &routed,
            key_groups: 0..0,
            handler: Handler::Rows,
            failure: String::new(),
            watch: Stopwatch::start(),
            attempts: 0,
            fuel: 0,
            poison: 0,
            letters: Vec::new(),
        };
        let finish = |(key_groups, outcome): (_, Result<Done, QueryError>)| match outcome {
            Ok(done) => Ok(done),
            Err(failure) => search.share(key_groups, failure),
        };
        let done = places.into_iter().zip(outcomes).map(finish).collect::<Result<_, _>>()?;
        Ok((done, search.letters))
    };
    searched().map_err(|error| suspects::name_key(pipeline, store, due, work, rows, error))
}

struct Search<'a> {
    step: &'a Step<'a>,
    routed: &'a Routed,
    /// Of the share that is searched.
    key_groups: Range<u16>,
    /// Whose failure is searched.
    handler: Handler,
    /// That failure, for people.
    failure: String,
    watch: Stopwatch,
    attempts: u64,
    fuel: u64,
    /// Letters that are not of held rows.
    poison: u64,
    letters: Vec<DeadLetter>,
}

/// A key with what it is still to be given.
struct Candidate {
    key: Vec<u8>,
    rows: Vec<Row>,
    /// Its due timers, ascending, where they are searched.
    due_ms: Vec<i64>,
}

/// How a key failed alone.
struct Failed {
    code: String,
    message: String,
    fuel: Option<u64>,
}

/// How the parts of a share that are tried together ended, where that decides something.
type Tried = Result<(), Failure>;

/// A failure in the handler that is searched.
struct Failure {
    error: QueryError,
    fuel: Option<u64>,
}

impl Search<'_> {
    /// Finds the poison of a share that failed, and runs it without.
    fn share(&mut self, key_groups: Range<u16>, mut failure: QueryError) -> Result<Done, QueryError> {
        let Step { pipeline, store, due, work, .. } = *self.step;
        self.key_groups = key_groups;
        let keys = self.routed.by_key(&self.key_groups, pipeline.routing.key_groups);
        let mut candidates: Vec<_> =
            keys.into_iter().map(|KeyRows { key, rows }| Candidate { key, rows, due_ms: Vec::new() }).collect();
        let earlier = self.letters.len();
        loop {
            let Some(handler) = handler(&failure) else { return Err(failure) };
            (self.handler, self.failure) = (handler, failure.to_string());
            let mut with_timers = match handler {
                Handler::Rows => Vec::new(),
                Handler::Timers => self.due_keys(&candidates, earlier)?,
            };
            let keys = if handler == Handler::Rows { &mut candidates } else { &mut with_timers };
            let end = self.explain(keys, failure)?;
            self.among(keys.get_mut(end..).unwrap_or_default())?;
            let share = self.rest(&candidates, earlier)?;
            self.spend()?;
            match pipeline.run_shares(store, due, work, vec![share]).pop() {
                Some(Err(next)) => failure = next,
                Some(Ok(done)) => return Ok(done),
                None => return Err(QueryError::settings("HOST_DEFECT", "a share has no outcome")),
            }
        }
    }

    /// A share without the poison that has been found.
    fn rest(&self, candidates: &[Candidate], earlier: usize) -> Result<Share, QueryError> {
        Ok(Share {
            key_groups: self.key_groups.clone(),
            rows: self.routed.gather(candidates.iter().map(|candidate| candidate.rows.as_slice()))?,
            runs: Runs::Processor,
            skipped_timers: self.skipped_timers(earlier),
        })
    }

    /// Timers with poison among the letters from this one on.
    fn skipped_timers(&self, earlier: usize) -> Vec<SkippedTimer> {
        skipped(self.letters.get(earlier..).unwrap_or_default()).timers
    }

    /// The keys of a share with due timers, in the order in which those fire.
    fn due_keys(&mut self, candidates: &[Candidate], earlier: usize) -> Result<Vec<Candidate>, QueryError> {
        let Step { pipeline, store, due, work, .. } = *self.step;
        self.spend()?;
        let share = self.rest(candidates, earlier)?;
        let timers = with_default(NoSubscriber::new(), || pipeline.due_timers(store, due, work, share))?;
        let rows: BTreeMap<&[u8], &[Row]> =
            candidates.iter().map(|candidate| (candidate.key.as_slice(), candidate.rows.as_slice())).collect();
        let due = timers.into_iter().map(|DueTimers { key, expiries_ms: due_ms }| {
            let rows = rows.get(key.as_slice()).map(|rows| rows.to_vec()).unwrap_or_default();
            Candidate { key, rows, due_ms }
        });
        Ok(due.collect())
    }

    /// Finds the poison among those keys that a failure names; answers with the place behind them.
    ///
    /// # Errors
    /// The failure, if none of them has poison.
    fn explain(&mut self, keys: &mut [Candidate], failure: QueryError) -> Result<usize, QueryError> {
        let suspects = suspects_among(keys, &failure);
        let (found, all) = (self.letters.len(), keys.len());
        let named = keys.get_mut(suspects.clone()).unwrap_or_default();
        if named.len() == all && all > 1 {
            let (first, second) = named.split_at_mut(all / 2);
            self.among(first)?;
            self.among(second)?;
        } else {
            self.among(named)?;
        }
        if self.letters.len() == found { Err(failure) } else { Ok(suspects.end) }
    }

    /// Finds the poison among keys that may have some.
    fn among(&mut self, keys: &mut [Candidate]) -> Result<(), QueryError> {
        let (mut done, mut together) = (0, KEYS_TOGETHER);
        while done < keys.len() {
            let rest = keys.get_mut(done..).unwrap_or_default();
            let count = rest.len().min(together);
            let tried = rest.get_mut(..count).unwrap_or_default();
            done += match (self.try_all(tried)?, tried) {
                (Ok(()), _) => {
                    together *= 2;
                    count
                }
                (Err(failure), [alone]) => {
                    self.narrow(alone, Failed::of(&failure))?;
                    1
                }
                (Err(failure), tried) => {
                    together = KEYS_TOGETHER;
                    self.explain(tried, failure.error)?
                }
            };
        }
        Ok(())
    }

    /// Takes the poison out of one key, which fails alone.
    fn narrow(&mut self, key: &mut Candidate, alone: Failed) -> Result<(), QueryError> {
        if key.parts(self.handler) == 0 {
            return Ok(());
        }
        let before = self.attempts - 1;
        // So many of its rows or timers pass; with all that are left it fails.
        let (mut passing, mut failed) = (0, alone);
        loop {
            let mut failing = key.parts(self.handler);
            while failing - passing > 1 {
                let middle = passing + (failing - passing) / 2;
                match self.try_first(key, middle)? {
                    Ok(()) => passing = middle,
                    Err(failure) => (failing, failed) = (middle, Failed::of(&failure)),
                }
            }
            self.put_aside(key, passing, failed, before)?;
            let parts = key.parts(self.handler);
            if parts == passing {
                return Ok(());
            }
            match self.try_first(key, parts)? {
                Ok(()) => return Ok(()),
                Err(failure) => failed = Failed::of(&failure),
            }
        }
    }

    /// Makes the part at this place a dead letter, and those that are held back behind it.
    fn put_aside(
        &mut self,
        key: &mut Candidate,
        place: usize,
        failed: Failed,
        attempts_before: u64,
    ) -> Result<(), QueryError> {
        let of = match self.handler {
            Handler::Rows => DeadOf::Row(self.routed.number(&key.rows.remove(place))),
            Handler::Timers => DeadOf::Timer(key.due_ms.remove(place)),
        };
        let Failed { code, message, fuel } = failed;
        let attempts = self.attempts - attempts_before;
        self.letters.push(DeadLetter { of, key: key.key.clone(), code, message, fuel, attempts });
        if let (AfterPoison::Hold, DeadOf::Row(number)) = (self.step.after_poison, of) {
            let since = format!("row {number} of this batch");
            let held = key.rows.drain(place..);
            let held = held.map(|row| held_row(key.key.clone(), self.routed.number(&row), &since));
            self.letters.extend(held);
        }
        self.poison += 1;
        if self.poison > self.step.letters_max {
            let problem = format!(
                "more than {} rows or timers of it make the processor fail, each on its own. So many look like a broken \
                 processor, not like poison rows: mend it; or, if they are meant to become dead letters, raise \
                 limits.poison.dead_letters",
                self.step.limits.dead_letters_max
            );
            return Err(self.given_up("POISON_LIMIT_EXCEEDED", problem));
        }
        Ok(())
    }

    /// Tries keys together.
    fn try_all(&mut self, keys: &[Candidate]) -> Result<Tried, QueryError> {
        let up_to_ms = self.step.pipeline.timer_threshold_ms(self.step.work.time).unwrap_or(i64::MIN);
        let keys: Vec<_> = keys.iter().map(|key| (key.key.as_slice(), key.rows.as_slice())).collect();
        self.attempt(&keys, up_to_ms)
    }

    /// Tries the first rows or timers of one key.
    fn try_first(&mut self, key: &Candidate, parts: usize) -> Result<Tried, QueryError> {
        let (rows, up_to_ms) = match self.handler {
            Handler::Rows => (key.rows.get(..parts), None),
            Handler::Timers => (Some(key.rows.as_slice()), key.due_ms.get(..parts).and_then(<[i64]>::last)),
        };
        let keys = [(key.key.as_slice(), rows.unwrap_or_default())];
        self.attempt(&keys, up_to_ms.copied().unwrap_or(i64::MIN))
    }

    /// Runs the processor without effect over some keys, in order.
    ///
    /// # Errors
    /// A failure that says nothing of them; the end of the search.
    fn attempt(&mut self, keys: &[(&[u8], &[Row])], up_to_ms: i64) -> Result<Tried, QueryError> {
        self.spend()?;
        faults::point("poison.attempt");
        let Step { pipeline, store, due, work, .. } = *self.step;
        // Keys with timers come in the order in which those fire.
        let mut in_order: Vec<_> = keys.iter().map(|(_, rows)| *rows).collect();
        in_order.sort_by_key(|rows| rows.first().map(Row::hash));
        let rows = self.routed.gather(in_order)?;
        let skipped: Vec<SkippedTimer>;
        let timers = match self.handler {
            Handler::Rows => None,
            Handler::Timers => {
                let of_keys: BTreeSet<_> = keys.iter().map(|(key, _)| *key).collect();
                let found = self.skipped_timers(0).into_iter();
                skipped = found.filter(|timer| of_keys.contains(timer.key.as_slice())).collect();
                Some(Fires { keys: of_keys.into_iter().collect(), up_to_ms, skipped: &skipped })
            }
        };
        let attempt = Attempt { key_groups: self.key_groups.clone(), rows, timers };
        // What is logged has been logged before.
        let (outcome, fuel) = with_default(NoSubscriber::new(), || pipeline.attempt(store, due, work, attempt));
        self.fuel = self.fuel.saturating_add(fuel.unwrap_or(0));
        match outcome {
            Ok(()) => Ok(Ok(())),
            Err(error) if handler(&error) == Some(self.handler) => Ok(Err(Failure { error, fuel })),
            Err(error) => Err(error),
        }
    }

    /// Counts one more run.
    fn spend(&mut self) -> Result<(), QueryError> {
        let PoisonLimits { attempts_max, fuel_max, time_max_ms, .. } = self.step.limits;
        self.attempts += 1;
        let spent = [
            (self.attempts > attempts_max, "attempts", attempts_max),
            (self.fuel > fuel_max, "fuel", fuel_max),
            (self.watch.elapsed_ms() > time_max_ms, "time_ms", time_max_ms),
        ];
        match spent.into_iter().find(|(is_spent, ..)| *is_spent) {
            None => Ok(()),
            Some((_, setting, max)) => {
                let problem = format!(
                    "the search for the rows or timers that make the processor fail was given up at {max} \
                     (limits.poison.{setting}), after {} run(s). Mend the processor or the input, or raise the limit",
                    self.attempts - 1
                );
                Err(self.given_up("POISON_SEARCH_EXHAUSTED", problem))
            }
        }
    }

    /// The end of the search, with what it knows.
    fn given_up(&self, code: &'static str, problem: String) -> QueryError {
        let of_key = |letter: &DeadLetter| {
            let layout = &self.step.pipeline.routing.key;
            let key = crate::record::row_to_json(layout, &letter.key).map(|key| key.to_string()).unwrap_or_default();
            match letter.of {
                DeadOf::Row(number) | DeadOf::HeldRow(number) => format!("row {number} of key {key} ({})", letter.code),
                DeadOf::Timer(at_ms) => format!("the timer at {at_ms} of key {key} ({})", letter.code),
            }
        };
        let known: Vec<_> = self.letters.iter().filter(|letter| letter.is_poison()).take(3).map(of_key).collect();
        let more = if self.poison > known.len() as u64 { ", ..." } else { "" };
        let known = match known.is_empty() {
            true => "none is known yet".to_owned(),
            false => format!("{} known: {}{more}", self.poison, known.join(", ")),
        };
        QueryError::PoisonSearch {
            code,
            batch_id: self.step.work.batch_id,
            problem,
            known,
            failure: self.failure.clone(),
        }
    }
}

impl Candidate {
    /// How many rows or timers it has.
    fn parts(&self, handler: Handler) -> usize {
        match handler {
            Handler::Rows => self.rows.len(),
            Handler::Timers => self.due_ms.len(),
        }
    }
}

impl Failed {
    fn of(failure: &Failure) -> Self {
        let (code, message) = match &failure.error {
            QueryError::Operator { source, .. } => (source.code().to_owned(), source.message()),
            other => (other.code().to_owned(), other.to_string()),
        };
        Self { code, message, fuel: failure.fuel }
    }
}

fn operator_error(error: &QueryError) -> Option<&OperatorError> {
    match error {
        QueryError::Operator { source, .. } => Some(source),
        _ => None,
    }
}

/// The handler in which the processor failed through what it was given.
fn handler(error: &QueryError) -> Option<Handler> {
    operator_error(error).and_then(OperatorError::handler)
}

/// Where among these keys those are that the processor had in hand; all, where it does not tell.
fn suspects_among(keys: &[Candidate], failure: &QueryError) -> Range<usize> {
    let all = 0..keys.len();
    let place = |suspect: &[u8]| keys.iter().position(|key| key.key == suspect);
    let named = match operator_error(failure).and_then(OperatorError::at) {
        Some(AtKey::Key(named)) => place(&named.key).map(|place| place..place + 1),
        Some(AtKey::OneOf(several) | AtKey::NoneAlone(several)) => {
            let ends = [several.first(), several.last()].map(|suspect| suspect.and_then(|of| place(&of.key)));
            match ends {
                [Some(first), Some(last)] if first <= last => Some(first..last + 1),
                _ => None,
            }
        }
        Some(AtKey::NoKey) | None => None,
    };
    named.unwrap_or(all)
}
