;; Grows a table for ever, which Rust cannot be made to do. The test that runs it parses this, embeds the world
;; `stateful-processor` and encodes it, as `tidemill build` would. The export names and signatures are those of `wit/world.wit`, lowered.
(module
  (memory (export "memory") 1)
  (table $table 1 funcref)
  ;; Strings of `query` are written from 4096 on and never read.
  (global $free (mut i32) (i32.const 4096))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.set $free (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (func (export "tidemill:processor/handler@0.1.0#init")
    (param i32 i32 i32 i32 i64 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    ;; A million elements at a time, until the host refuses.
    (loop $more
      (br_if $more (i32.ne (table.grow $table (ref.null func) (i32.const 1000000)) (i32.const -1))))
    unreachable)
  (func (export "tidemill:processor/handler@0.1.0#handle-initial-state") (param i64 i64) (result i32) unreachable)
  (func (export "tidemill:processor/handler@0.1.0#handle-input-rows") (param i64 i64) (result i32) unreachable)
  (func (export "tidemill:processor/handler@0.1.0#handle-expired-timer") (param i64 i64) (result i32) unreachable)
  (func (export "tidemill:processor/handler@0.1.0#close") (result i32) unreachable))
