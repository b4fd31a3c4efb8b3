#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidemill_host::fuzzing::run("compiler_messages", bytes));
