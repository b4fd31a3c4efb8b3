//! `export_processor!`: makes a processor the exports of a component.

/// Makes a processor the one of this crate: `export_processor!(Counter);`, or `export_processor!(Counter,
/// initial_state);` for one that takes an initial state. The crate is of type `cdylib` and built for
/// `wasm32-unknown-unknown`; elsewhere, as in tests, it does nothing.
#[macro_export]
macro_rules! export_processor {
    ($processor:ty) => {
        $crate::__export!($processor, init, |_instance, _time| ::std::result::Result::Ok(()));
    };
    ($processor:ty, initial_state) => {
        $crate::__export!($processor, init_with_initial_state, |instance, time| instance.handle_initial_state(time));
    };
}

// Natively there is nothing to export, but the same to check.
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __export {
    ($processor:ty, $init:ident, |$instance:ident, $time:ident| $initial_state:expr) => {
        const _: fn() = $crate::export::$init::<$processor>;
    };
}

/// Compiles for a processor.
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub fn init<P: crate::StatefulProcessor>() {}

/// Compiles for a processor that takes an initial state.
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub fn init_with_initial_state<P: crate::StatefulProcessorWithInitialState>() {}

// Paths are written in full throughout: the author's crate may have a `Result` of its own.
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
#[macro_export]
macro_rules! __export {
    ($processor:ty, $init:ident, |$instance:ident, $time:ident| $initial_state:expr) => {
        const _: () = {
            use ::std::result::Result as R;
            use $crate::component::bindings::exports::tidemill::processor::handler;

            ::std::thread_local! {
                static INSTANCE: ::std::cell::RefCell<::std::option::Option<$crate::instance::Instance<$processor>>> =
                    const { ::std::cell::RefCell::new(::std::option::Option::None) };
            }

            struct Component;

            fn run(
                phase: impl ::std::ops::FnOnce(
                    &mut $crate::instance::Instance<$processor>,
                ) -> R<(), $crate::contract::Failure>,
            ) -> R<(), handler::Failure> {
                INSTANCE.with_borrow_mut(|instance| match instance {
                    ::std::option::Option::Some(instance) => phase(instance).map_err(::std::convert::Into::into),
                    ::std::option::Option::None => R::Err($crate::component::not_initialised()),
                })
            }

            impl handler::Guest for Component {
                fn init(query: handler::Query) -> R<handler::Plan, handler::Failure> {
                    let (instance, plan) = $crate::component::$init::<$processor>(query)?;
                    INSTANCE.set(::std::option::Option::Some(instance));
                    R::Ok(plan)
                }

                fn handle_initial_state(time: handler::TimerValues) -> R<(), handler::Failure> {
                    let $time: $crate::contract::TimerValues = time.into();
                    run(|$instance| $initial_state)
                }

                fn handle_input_rows(time: handler::TimerValues) -> R<(), handler::Failure> {
                    run(|instance| instance.handle_input_rows(time.into()))
                }

                fn handle_expired_timer(time: handler::TimerValues) -> R<(), handler::Failure> {
                    run(|instance| instance.handle_expired_timer(time.into()))
                }

                fn close() -> R<(), handler::Failure> {
                    run(|instance| instance.close())
                }
            }

    $crate::component::bindings::export_world!(Component with_types_in $crate::component::bindings);
        };
    };
}
