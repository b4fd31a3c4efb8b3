//! Instances made ahead: while a batch is being committed, another thread instantiates the component for the next one.
//!
//! Such an instance is the component's start image: none of its exports has been called, and it knows no batch, clock or
//! seed. A component that calls an import while it is instantiated would learn of them (printing counts, as the log
//! belongs to a batch): its instances are all made in their batch.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;

use super::host::Host;
use super::instance::Blank;
use super::processor::Ready;

/// The instances of one component that wait for a batch: at most one more than have worked at the same time.
#[derive(Default)]
pub(super) struct Ahead {
    shelf: Mutex<Shelf>,
    /// Wakes the thread; None inside: there is none.
    thread: OnceLock<Option<Sender<()>>>,
}

#[derive(Default)]
struct Shelf {
    waiting: Vec<Blank>,
    /// How many have still to be made.
    wished: usize,
}

impl Ahead {
    /// An instance that waits. Where there is none the worker makes its own, and one less is wished for: else a thread that
    /// is slower than the batches would pile them up.
    pub(super) fn take(&self) -> Option<Blank> {
        let mut shelf = self.shelf();
        let blank = shelf.waiting.pop();
        if blank.is_none() {
            shelf.wished = shelf.wished.saturating_sub(1);
        }
        blank
    }

    /// Asks for an instance. Nothing says when it comes, or that it does.
    pub(super) fn wish(ready: &Arc<Ready>) {
        if let Some(thread) = ready.ahead.thread.get_or_init(|| start(ready)) {
            ready.ahead.shelf().wished += 1;
            // Fails when the thread has given up.
            let _ = thread.send(());
        }
    }

    /// Takes on the making of one, if any is still wished for.
    fn is_wanted(&self) -> bool {
        let mut shelf = self.shelf();
        let is_wanted = shelf.wished > 0;
        shelf.wished -= usize::from(is_wanted);
        is_wanted
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start(ready: &Arc<Ready>) -> Option<Sender<()>> {
    let (sender, receiver) = mpsc::channel();
    let ready = Arc::downgrade(ready);
    let thread = thread::Builder::new().name("wasm-ahead".to_owned()).spawn(move || make(&ready, &receiver));
    thread.ok().map(|_| sender)
}

/// Makes one instance for each wish, until the component is gone or turns out to be one for which this cannot be done.
fn make(ready: &Weak<Ready>, wishes: &Receiver<()>) {
    while wishes.recv().is_ok() {
        let Some(ready) = ready.upgrade() else { return };
        if !ready.ahead.is_wanted() {
            continue;
        }
        match Blank::make(&ready, Host::of_no_batch(&ready)) {
            Ok(blank) if !blank.has_asked() => ready.ahead.shelf().waiting.push(blank),
            // Whatever is wrong will be told when a batch needs an instance.
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::Metering;
    use super::super::limits::Limits;
    use super::super::processor::Processor;
    use super::super::testing::grouped;
    use super::super::testing::guests::{open_as, processor, query};
    use super::*;
    use crate::engine::operator::{Closed, Operator, OperatorPlan};

    /// A processor whose instances are made where they are needed, except for those that [`make_ahead`] makes.
    fn planned(parts: &str) -> (Processor, OperatorPlan) {
        let processor = processor(Metering::Fuel, Limits::default(), parts);
        processor.ready.ahead.thread.set(None).unwrap();
        let plan = processor.plan(&query()).unwrap();
        (processor, plan)
    }

    /// Does the work of the thread for so many wishes.
    fn make_ahead(processor: &Processor, wishes: usize) {
        let (sender, receiver) = mpsc::channel();
        processor.ready.ahead.shelf().wished += wishes;
        (0..wishes).for_each(|_| sender.send(()).unwrap());
        drop(sender);
        make(&Arc::downgrade(&processor.ready), &receiver);
    }

    fn waiting(processor: &Processor) -> usize {
        processor.ready.ahead.shelf().waiting.len()
    }

    fn run(processor: &Processor, plan: &OperatorPlan) -> Closed {
        let mut worker = open_as(processor, plan.clone()).unwrap();
        worker.input_rows(grouped(&[("a", &[1]), ("b", &[2, 3])])).unwrap();
        worker.close().unwrap()
    }

    #[test]
    fn an_instance_that_waits_is_used_by_one_worker() {
        let (processor, plan) = planned("");
        make_ahead(&processor, 2);
        assert_eq!(waiting(&processor), 2);
        run(&processor, &plan);
        assert_eq!(waiting(&processor), 1);
    }

    #[test]
    fn a_worker_that_makes_its_own_is_one_wish_less() {
        let (processor, plan) = planned("");
        processor.ready.ahead.shelf().wished = 2;

        run(&processor, &plan);

        assert_eq!(processor.ready.ahead.shelf().wished, 1);
    }

    #[test]
    fn it_does_what_one_that_is_made_in_the_batch_does() {
        let grows = r#"(func (export "_initialize") (drop (memory.grow (i32.const 5))))"#;
        let (processor, plan) = planned(grows);
        let in_the_batch = run(&processor, &plan);
        make_ahead(&processor, 1);

        let ahead = run(&processor, &plan);

        assert_eq!(ahead.input_digest, in_the_batch.input_digest);
        assert_eq!(ahead.fuel, in_the_batch.fuel);
        assert_eq!(ahead.sandbox_bytes, in_the_batch.sandbox_bytes);
    }

    #[test]
    fn what_it_logs_belongs_to_its_batch() {
        let logs = r#"(func (export "tidemill:processor/handler@0.1.0#close") (result i32)
            (call $log (i32.const 4) (i32.const 264) (i32.const 10)) unreachable)"#;
        let (processor, plan) = planned(logs);
        make_ahead(&processor, 1);
        let mut worker = open_as(&processor, plan).unwrap();
        worker.input_rows(grouped(&[("a", &[1])])).unwrap();
        let error = worker.close().map(drop).unwrap_err();
        assert!(error.to_string().contains("last words"), "{error}");
    }

    #[test]
    fn a_component_that_calls_imports_while_it_is_instantiated_is_never_made_ahead() {
        let speaks = r#"(func (export "_initialize") (call $log (i32.const 4) (i32.const 264) (i32.const 10)))"#;
        let (processor, plan) = planned(speaks);

        make_ahead(&processor, 2);

        assert_eq!(waiting(&processor), 0);
        run(&processor, &plan);
    }

    #[test]
    fn a_component_that_cannot_be_instantiated_says_so_in_its_batch() {
        let (processor, plan) = planned("");
        let tight = Limits { memory_bytes: 1, ..Limits::default() };
        let tight =
            Processor::from_bytes(&processor.ready.sandbox, "tight", processor.artifact().unwrap(), tight, None);
        let tight = tight.unwrap();

        make_ahead(&tight, 1);

        assert_eq!(waiting(&tight), 0);
        assert_eq!(open_as(&tight, plan).map(drop).unwrap_err().code(), "GUEST_MEMORY");
    }

    #[test]
    fn the_thread_ends_with_the_component() {
        let (processor, _) = planned("");
        let ready = Arc::downgrade(&processor.ready);
        drop(processor);
        let (sender, receiver) = mpsc::channel();
        sender.send(()).unwrap();

        // There is someone left who could wish, and yet it returns.
        make(&ready, &receiver);
        drop(sender);
    }
}
