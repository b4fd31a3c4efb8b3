;; What a Go program finds where it expects an operating system: the functions of wasi_snapshot_preview1 that the
;; standard Go toolchain imports, without an operating system. README.md says why this is not the stock adapter.
;;
;; Invariants: no state but the globals below, so a component starts equal every time; no memory of its own and none
;; grown; no import but the log of the host, and not even that while the host allocates in this component. All mutable
;; globals are i64, since an encoder takes a mutable i32 one for a stack pointer.
(module
  (import "tidemill:processor/logging@0.1.0" "log" (func $log (param $level i32) (param $text i32) (param $length i32)))
  (import "tidemill:processor/logging@0.1.0" "write" (func $write (param $stdio i32) (param $bytes i32) (param $length i32)))
  (import "env" "memory" (memory 0))

  ;; Nanoseconds that have been slept. Reading a clock does not move it.
  (global $slept (mut i64) (i64.const 0))
  ;; The time of the batch, nanoseconds since the epoch; what package initialisation sees comes before it is known.
  (global $batch_time (mut i64) (i64.const 0))
  ;; State of the generator of random bytes.
  (global $random (mut i64) (i64.const 0))
  ;; Not 0 while cabi_realloc runs. A component must not call the host then.
  (global $paused (mut i64) (i64.const 0))
  ;; Where the SDK keeps the group in hand and the text for $say_last_words; 0 until adapter_begin.
  (global $last_words (mut i64) (i64.const 0))

  ;; Bytes that a dying program may still print on standard error; negative while it lives.
  (global $last_bytes (mut i64) (i64.const -1))

  ;; --- for the SDK

  ;; Called at the begin of `init`. $words points to: the group in hand as u32 (0xffffffff for none), the length of the
  ;; text as u32, and the text: 15 bytes "panic in group ", 10 bytes of room for a number, and the rest of a message.
  (func (export "adapter_begin") (param $batch_time_ns i64) (param $seed i64) (param $words i32)
    (global.set $batch_time (i64.sub (local.get $batch_time_ns) (global.get $slept)))
    (global.set $random (local.get $seed))
    (global.set $last_words (i64.extend_i32_u (local.get $words))))

  (func (export "adapter_set_paused") (param $paused i32)
    (global.set $paused (i64.extend_i32_u (local.get $paused))))

  ;; --- time

  ;; 0 is the wall clock, 1 the monotonic one. There is no processor time.
  (func (export "clock_time_get") (param $clock i32) (param $precision i64) (param $time i32) (result i32)
    (if (i32.gt_u (local.get $clock) (i32.const 1)) (then (return (i32.const 28))))
    (i64.store (local.get $time)
      (if (result i64) (local.get $clock)
        ;; It starts at a second: Go takes 0 for a clock that does not work.
        (then (i64.add (global.get $slept) (i64.const 1000000000)))
        (else (i64.add (global.get $slept) (global.get $batch_time)))))
    (i32.const 0))

  ;; The first event happens at once; if it is that time has passed, it has.
  (func (export "poll_oneoff") (param $in i32) (param $out i32) (param $count i32) (param $events i32) (result i32)
    (local $time i64)
    (if (i32.eqz (local.get $count)) (then (return (i32.const 28))))
    (if (i32.eqz (i32.load8_u offset=8 (local.get $in)))
      (then
        (local.set $time (i64.load offset=24 (local.get $in)))
        (if (i32.and (i32.load16_u offset=40 (local.get $in)) (i32.const 1))
          (then ;; a point in time, of the clock that the subscription names
            (local.set $time (i64.sub (local.get $time)
              (if (result i64) (i32.load offset=16 (local.get $in))
                (then (i64.add (global.get $slept) (i64.const 1000000000)))
                (else (i64.add (global.get $slept) (global.get $batch_time))))))))
        (if (i64.gt_s (local.get $time) (i64.const 0))
          (then (global.set $slept (i64.add (global.get $slept) (local.get $time)))))))
    (i64.store (local.get $out) (i64.load (local.get $in)))
    (i64.store offset=8 (local.get $out) (i64.const 0))
    (i32.store8 offset=10 (local.get $out) (i32.load8_u offset=8 (local.get $in)))
    (i32.store (local.get $events) (i32.const 1))
    (i32.const 0))

  (func (export "sched_yield") (result i32) (i32.const 0))

  ;; --- random bytes: SplitMix64

  (func $next_random (result i64)
    (local $z i64)
    (global.set $random (i64.add (global.get $random) (i64.const 0x9E3779B97F4A7C15)))
    (local.set $z (global.get $random))
    (local.set $z (i64.mul (i64.xor (local.get $z) (i64.shr_u (local.get $z) (i64.const 30))) (i64.const 0xBF58476D1CE4E5B9)))
    (local.set $z (i64.mul (i64.xor (local.get $z) (i64.shr_u (local.get $z) (i64.const 27))) (i64.const 0x94D049BB133111EB)))
    (i64.xor (local.get $z) (i64.shr_u (local.get $z) (i64.const 31))))

  (func (export "random_get") (param $at i32) (param $length i32) (result i32)
    (local $end i32)
    (local.set $end (i32.add (local.get $at) (local.get $length)))
    (block $done
      (loop $byte
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (i64.store8 (local.get $at) (call $next_random))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $byte)))
    (i32.const 0))

  ;; --- what a program prints, and its end

  ;; Standard output and error go to the log of the host. There are no other files.
  (func (export "fd_write") (param $fd i32) (param $pieces i32) (param $count i32) (param $written i32) (result i32)
    (local $sum i32) (local $bytes i32) (local $length i32)
    (if (i32.gt_u (i32.sub (local.get $fd) (i32.const 1)) (i32.const 1)) (then (return (i32.const 8))))
    (block $done
      (loop $piece
        (br_if $done (i32.eqz (local.get $count)))
        (local.set $bytes (i32.load (local.get $pieces)))
        (local.set $length (i32.load offset=4 (local.get $pieces)))
        (if (i32.and (i64.eqz (global.get $paused)) (call $may_print (local.get $bytes) (local.get $length)))
          (then (call $write (i32.sub (local.get $fd) (i32.const 1)) (local.get $bytes) (local.get $length))))
        (local.set $sum (i32.add (local.get $sum) (local.get $length)))
        (local.set $pieces (i32.add (local.get $pieces) (i32.const 8)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $piece)))
    (i32.store (local.get $written) (local.get $sum))
    (i32.const 0))

  ;; Go prints "fatal error: " before it dies of what no program can go on with (no memory, a deadlock), and "panic: " of a
  ;; panic that nobody recovered; then the stack of the handler, and then those of its own goroutines, which would push the
  ;; others out of the host's report.
  (func $may_print (param $bytes i32) (param $length i32) (result i32)
    (local $begin i64)
    (if (i32.ge_u (local.get $length) (i32.const 7))
      (then
        (local.set $begin (i64.and (i64.load (local.get $bytes)) (i64.const 0x00ff_ffff_ffff_ffff)))
        (if (i32.and
            (i64.lt_s (global.get $last_bytes) (i64.const 0))
            (i32.or
              (i64.eq (local.get $begin) (i64.const 0x65_206c_6174_6166)) ;; "fatal e"
              (i64.eq (local.get $begin) (i64.const 0x20_3a63_696e_6170)))) ;; "panic: "
        (then
          (global.set $last_bytes (i64.const 1000))
          (call $say_last_words)))))
    (if (i64.lt_s (global.get $last_bytes) (i64.const 0)) (then (return (i32.const 1))))
    (global.set $last_bytes (i64.sub (global.get $last_bytes) (i64.extend_i32_u (local.get $length))))
    (if (i64.lt_s (global.get $last_bytes) (i64.const 0)) (then (global.set $last_bytes (i64.const 0))))
    (i64.ne (global.get $last_bytes) (i64.const 0)))

  ;; The end of a program is a trap, which has no words, so the log names the group in hand before: the host puts its key
  ;; in the place of the number.
  (func $say_last_words
    (local $words i32) (local $group i32) (local $at i32)
    (local.set $words (i32.wrap_i64 (global.get $last_words)))
    (if (i32.eqz (local.get $words)) (then (return)))
    (local.set $group (i32.load (local.get $words)))
    (if (i32.eq (local.get $group) (i32.const -1)) (then (return)))
    ;; The number, from its last digit, and what stands before it moved up to it.
    (local.set $at (i32.add (local.get $words) (i32.const 33)))
    (loop $digit
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.rem_u (local.get $group) (i32.const 10))))
      (local.set $group (i32.div_u (local.get $group) (i32.const 10)))
      (br_if $digit (local.get $group)))
    (local.set $at (i32.sub (local.get $at) (i32.const 15)))
    (memory.copy (local.get $at) (i32.add (local.get $words) (i32.const 8)) (i32.const 15))
    (call $log (i32.const 4) (local.get $at)
      (i32.sub (i32.add (i32.add (local.get $words) (i32.const 8)) (i32.load offset=4 (local.get $words))) (local.get $at))))

  (func (export "proc_exit") (param $status i32)
    (if (i64.eqz (global.get $paused)) (then (call $say_last_words)))
    (unreachable))

  ;; --- no arguments, no environment

  (func $two_zeros (param $count i32) (param $size i32) (result i32)
    (i32.store (local.get $count) (i32.const 0))
    (i32.store (local.get $size) (i32.const 0))
    (i32.const 0))
  (func (export "args_sizes_get") (param i32 i32) (result i32) (call $two_zeros (local.get 0) (local.get 1)))
  (func (export "environ_sizes_get") (param i32 i32) (result i32) (call $two_zeros (local.get 0) (local.get 1)))
  (func (export "args_get") (param i32 i32) (result i32) (i32.const 0))
  (func (export "environ_get") (param i32 i32) (result i32) (i32.const 0))

  ;; --- no files, no sockets: 8 is "bad file descriptor"

  (func (export "fd_close") (param i32) (result i32) (i32.const 8))
  (func (export "fd_fdstat_get") (param i32 i32) (result i32) (i32.const 8))
  (func (export "fd_fdstat_set_flags") (param i32 i32) (result i32) (i32.const 8))
  (func (export "fd_fdstat_set_rights") (param i32 i64 i64) (result i32) (i32.const 8))
  (func (export "fd_filestat_get") (param i32 i32) (result i32) (i32.const 8))
  (func (export "fd_filestat_set_size") (param i32 i64) (result i32) (i32.const 8))
  (func (export "fd_pread") (param i32 i32 i32 i64 i32) (result i32) (i32.const 8))
  (func (export "fd_prestat_dir_name") (param i32 i32 i32) (result i32) (i32.const 8))
  (func (export "fd_prestat_get") (param i32 i32) (result i32) (i32.const 8))
  (func (export "fd_pwrite") (param i32 i32 i32 i64 i32) (result i32) (i32.const 8))
  (func (export "fd_read") (param i32 i32 i32 i32) (result i32) (i32.const 8))
  (func (export "fd_readdir") (param i32 i32 i32 i64 i32) (result i32) (i32.const 8))
  (func (export "fd_seek") (param i32 i64 i32 i32) (result i32) (i32.const 8))
  (func (export "fd_sync") (param i32) (result i32) (i32.const 8))
  (func (export "path_create_directory") (param i32 i32 i32) (result i32) (i32.const 8))
  (func (export "path_filestat_get") (param i32 i32 i32 i32 i32) (result i32) (i32.const 8))
  (func (export "path_filestat_set_times") (param i32 i32 i32 i32 i64 i64 i32) (result i32) (i32.const 8))
  (func (export "path_link") (param i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 8))
  (func (export "path_open") (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32) (i32.const 8))
  (func (export "path_readlink") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 8))
  (func (export "path_remove_directory") (param i32 i32 i32) (result i32) (i32.const 8))
  (func (export "path_rename") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 8))
  (func (export "path_symlink") (param i32 i32 i32 i32 i32) (result i32) (i32.const 8))
  (func (export "path_unlink_file") (param i32 i32 i32) (result i32) (i32.const 8))
  (func (export "sock_accept") (param i32 i32 i32) (result i32) (i32.const 8))
  (func (export "sock_shutdown") (param i32 i32) (result i32) (i32.const 8)))
