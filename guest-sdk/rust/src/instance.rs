//! One instance of a processor: the phases of a batch, as the host calls them.

use std::rc::Rc;

use crate::Host;
use crate::contract::{Failure, Plan, Query, TimerValues};
use crate::ddl::column_names;
use crate::error::{Error, Result, code};
use crate::handle::Handle;
use crate::processor::{Out, Rows, StatefulProcessor, StatefulProcessorWithInitialState};
use crate::row::{from_packed, schema, schema_at};
use crate::session::Session;
use crate::timers::Timers;

/// A processor between `init` and `close`.
pub struct Instance<P: StatefulProcessor> {
    processor: P,
    session: Rc<Session>,
    timers: Timers,
    out: Out<P::Output>,
}

impl<P: StatefulProcessor> Instance<P> {
    /// `init` of a processor that takes no initial state.
    pub(crate) fn init(host: Host, query: Query) -> Result<(Self, Plan), Failure> {
        let initial_state = match &query.initial_state {
            None => Ok(None),
            Some(_) => Err(Error::new(
                code::INITIAL_STATE_NOT_HANDLED,
                "the query has an initial state, but the processor takes none: implement StatefulProcessorWithInitialState \
                 and export it by `export_processor!(Name, initial_state)`",
            )),
        };
        initial_state
            .and_then(|initial_state| Self::make(host, query, initial_state))
            .map_err(|error| Failure::new(&error, None))
    }

    fn make(host: Host, query: Query, initial_state: Option<String>) -> Result<(Self, Plan)> {
        let plan = Plan {
            output: schema::<P::Output>()?,
            columns: schema_at::<P::Input>("input", &column_names(&query.input))?,
            initial_state,
            key: schema_at::<P::Key>("grouping key", &column_names(&query.key))?,
        };
        let session = Session::new(host, query.time_mode);
        let processor = P::init(&mut Handle::new(Rc::clone(&session), query))?;
        let timers = Timers::new(Rc::clone(&session));
        let out = Out::new(Rc::clone(&session));
        Ok((Self { processor, session, timers, out }, plan))
    }

    /// The phase of input rows.
    pub fn handle_input_rows(&mut self, time: TimerValues) -> Result<(), Failure> {
        self.phase(time, |instance, key| {
            let Self { processor, session, timers, out } = instance;
            processor.handle_input_rows(key, Rows::new(session), timers, out)
        })
    }

    /// The phase of timers.
    pub fn handle_expired_timer(&mut self, time: TimerValues) -> Result<(), Failure> {
        self.phase(time, |instance, key| {
            let Self { processor, session, timers, out } = instance;
            timers.begin_group();
            while let Some(expiry_ms) = session.next_row(from_packed)? {
                if timers.begin_firing(expiry_ms)? {
                    processor.handle_expired_timer(key, expiry_ms, timers, out)?;
                    timers.end_firing();
                }
            }
            Ok(())
        })
    }

    /// The end of the batch.
    pub fn close(&mut self) -> Result<(), Failure> {
        self.processor.close().map_err(|error| Failure::new(&error, None))
    }

    fn phase(
        &mut self,
        time: TimerValues,
        handle: impl FnMut(&mut Self, &P::Key) -> Result<()>,
    ) -> Result<(), Failure> {
        self.timers.set_time(time);
        self.each_group(handle).map_err(|error| Failure::new(&error, self.session.group_in_hand()))
    }

    #[inline]
    fn each_group(&mut self, mut handle: impl FnMut(&mut Self, &P::Key) -> Result<()>) -> Result<()> {
        while self.session.next_group()? {
            let key: P::Key = self.session.key(from_packed)?;
            handle(self, &key)?;
            self.session.check()?;
        }
        Ok(())
    }
}

impl<P: StatefulProcessorWithInitialState> Instance<P> {
    /// `init` of a processor that takes an initial state.
    pub(crate) fn init_with_initial_state(host: Host, query: Query) -> Result<(Self, Plan), Failure> {
        let wanted = match &query.initial_state {
            None => Ok(None),
            Some(given) => schema_at::<P::InitialState>("initial state", &column_names(given)).map(Some),
        };
        wanted.and_then(|wanted| Self::make(host, query, wanted)).map_err(|error| Failure::new(&error, None))
    }

    /// The phase of the initial state.
    pub fn handle_initial_state(&mut self, time: TimerValues) -> Result<(), Failure> {
        self.phase(time, |instance, key| {
            let Self { processor, session, timers, .. } = instance;
            while let Some(row) = session.next_row(from_packed)? {
                processor.handle_initial_state(key, row, timers)?;
            }
            Ok(())
        })
    }
}
