#!/usr/bin/env python3
"""Makes cases of the test kit out of what Spark was recorded to do (recorded/*.json).

    generate.py           writes cases/spark/*.toml
    generate.py --check   writes nothing; fails if the cases are not what this would write

SCENARIOS says how each recorded scenario is run here and which lines of COVERAGE.md it shows; DIFFERS says at which
steps we do something else on purpose, why, and what, derived by hand. All else must come out as recorded: the rows of
every key in their order, and the counts of state. Standard library only.
"""
import ast
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
CASES = HERE / "cases" / "spark"

# Settings of a scenario: program (of tests/guests/conformance), time mode, delay of the watermark, its parameters.
NONE, PROCESSING, EVENT = "none", "processing-time", "event-time"
DELAY = "10 seconds"


def scenario(program, time_mode, shows, about, watermark=None, parameters=None, settings=None, initial=None,
             initial_schema=None, counts=True):
    if time_mode == EVENT and watermark is None:
        watermark = DELAY
    return dict(program=program, time_mode=time_mode, shows=shows.split(), about=about, watermark=watermark,
                parameters=parameters or {}, settings=settings or {}, initial=initial, initial_schema=initial_schema,
                counts=counts)


def crud(shows, about, **more):
    return scenario("crud", NONE, shows, about, **more)


def timers(shows, about, **more):
    return scenario("timers", PROCESSING, shows, about, **more)


def event(shows, about, **more):
    return scenario("event", EVENT, shows, about, **more)


def misuse(shows, about, time_mode=NONE, settings=None, **parameters):
    return scenario("misuse", time_mode, shows, about, parameters=parameters, settings=settings)


def named(name, shows, about):
    return misuse(shows, about, init="value", name=name)


INITIAL = [dict(key="x", n=10), dict(key="y", n=5, timer=1_001_000), dict(key="z", n=7, timer=999_999),
           dict(key="w", n=1, timer=1_003_000), dict(key="x", n=100)]

SCENARIOS = {
    "s01_value": crud("B1 B2 B3 B4 B5 B9", "A value from its first write to its removal, with NULL fields"),
    "s01_list": crud("C1 C2 C3 C4 C8 C13 C14", "A list: append, put, clear, over batches"),
    "s01_list_put_empty": crud("C5", "A list cannot be put empty"),
    "s01_list_put_empty_caught": crud("C7", "A refused call can be caught, and the batch goes on"),
    "s01_list_append_empty": crud("C6", "No empty list can be appended"),
    "s01_map": crud("D1 D2 D3 D4 D6 D12 D14 D15", "A map: update, remove, iterate, exists, in the order of its keys' bytes"),
    "s02_exact_expiry": scenario("ttl", PROCESSING, "G1 G5 G7 G9 G19 F11",
                                 "What was written at T with a TTL of 5000 is there at T+4999 and gone at T+5000"),
    "s02_purge": scenario("ttl", PROCESSING, "G4 F15", "Expired state is removed by a batch without rows"),
    "s02_per_element": scenario("ttl", PROCESSING, "G8 G10 G12 G14",
                                "Elements and entries expire one by one; reads do not renew, put renews a whole list"),
    "s02_extend": scenario("ttl", PROCESSING, "G3 G21", "A write renews a value; the old expiry passes without effect"),
    "s03_boundary": timers("E1 E6", "A timer fires in the first batch whose time is its expiry or later"),
    "s03_now_and_past": timers("E12 E9", "A timer registered in the past fires in the same batch"),
    "s03_order": timers("E4 E8 E10 E11 E20", "Several timers of two keys; twice the same; one deleted, one missing"),
    "s03_rows_and_timer": timers("E24 E25 E26", "Rows and due timers of one batch: rows first, and they can move a timer"),
    "s03_in_timer_rearm": timers("A11 E15", "A timer registered by a handler for later fires then"),
    "s03_in_timer_same": timers("E16", "A timer that registers its own time again", counts=False),
    "s03_in_timer_past": timers("E14", "A timer registered by a handler in the past fires in the next batch"),
    "s03_in_timer_mid": timers("E14", "So does one between the firing one and now"),
    "s03_in_timer_delete_next": timers("E17 E19", "A handler deletes another timer that is due"),
    "s03_in_timer_clear": timers("E19", "A handler clears state; the next timer does not see it"),
    "s03_extreme": timers("E9", "Timers at zero, below zero and in the far future"),
    "s04_boundary": event("F1 F13 E5", "Event-time timers fire when the watermark reaches them, one batch later"),
    "s04_back_to_back": event("F1 F7", "Rows come back to back: no batch in between"),
    "s04_back_to_back_1file": event("F1", "One file per batch", settings={"limits": {"files_per_batch": 1}}),
    "s04_late": event("F2 F3 F4 Q2", "Rows at or before the watermark of the batch before are dropped and counted"),
    "s04_late_same_batch": event("F1", "Rows are not late because of rows of their own batch"),
    "s04_null_ts": event("F17", "A row without event time is not late and does not move the watermark"),
    "s04_order": event("E4 E5 E8 E10", "Event-time timers of two keys"),
    "s04_in_timer_past": event("E14 F14", "A handler of event time registers a timer in the past"),
    "s04_in_timer_atWm": event("E14", "A handler registers a timer at the watermark"),
    "s04_in_timer_later": event("E15", "A handler registers a timer just behind the watermark"),
    "s04_reg_at_wm": event("E13", "A timer registered at the watermark fires in the same batch"),
    "s04_reg_behind_wm": event("E13", "So does one before it"),
    "s04_reg_first_batch_zero": event("E9 E13", "The watermark is 0 in the first batch"),
    "s04_rows_and_timer": event("E26", "A row deletes a timer that is due in its batch"),
    "s04_no_watermark": event("F18", "Event time without a watermark", watermark=""),
    "s04_append": event("E5", "The same in output mode append", settings={"query": {"output_mode": "append"}}),
    "s04_zero_delay": event("F3 F6", "A watermark without delay", watermark="0s"),
    "s05_first_batch": scenario("initial", PROCESSING, "H1 H3 H5 H8 E22", "Initial state, then rows, then timers",
                                initial=INITIAL, counts=False),
    "s05_no_input": scenario("initial", PROCESSING, "H4 H8", "Initial state and no input", initial=INITIAL,
                             counts=False),
    "s05_event_time": scenario("initial", EVENT, "H8 F18", "Timers of event time from the initial state", counts=False,
                               initial=[dict(key="x", n=10, timer=89_999), dict(key="y", n=5, timer=0),
                                        dict(key="z", n=7, timer=90_001)],
                               settings={"query": {"output_mode": "append"}}),
    "s05_none_mode": scenario("initial", NONE, "H5", "Initial state without timers", initial=[dict(key="x", n=10)],
                              counts=False),
    "s05_key_type_differs": scenario("initial", NONE, "H13", "Initial state with another type of key", counts=False,
                                     initial=[dict(key=1, n=10)], initial_schema="key INT, n BIGINT, timer BIGINT"),
    "s06_none_register_timer": misuse("A12", "No timer can be registered in time mode none", rows="register"),
    "s06_none_delete_timer": misuse("A12", "No timer can be deleted in time mode none", rows="delete"),
    "s06_none_list_timers": misuse("A12", "No timers can be listed in time mode none", rows="list"),
    "s06_none_time_values": misuse("F18", "The times that a handler sees in mode none", rows="times"),
    "s06_none_ttl": misuse("G17", "No value expires in mode none", init="ttl value"),
    "s06_none_ttl_list": misuse("G17", "No list expires in mode none", init="ttl list"),
    "s06_none_ttl_map": misuse("G17", "No map expires in mode none", init="ttl map"),
    "s06_event_ttl": misuse("G17", "No value expires in event time", time_mode=EVENT, init="ttl value"),
    "s06_ttl_zero": misuse("G18", "A TTL of zero is none", time_mode=PROCESSING, init="ttl value", ttl_ms="0"),
    "s06_ttl_none_mode_zero": misuse("G18", "In every time mode", init="ttl value", ttl_ms="0"),
    "s06_dup_same_type": misuse("J12", "A name cannot be taken twice by the same kind", init="value", name="n"),
    "s06_dup_other_type": misuse("J12", "Nor by two kinds", init="list", name="n"),
    "s06_name_0": named("", "B12", "A variable must have a name"),
    "s06_name_1": named(" x", "B12", "A name has no blanks at its ends"),
    "s06_name_2": named("_x", "B13", "A name may begin with an underscore"),
    "s06_name_3": named("$x", "B13", "A name may not begin with a dollar"),
    "s06_name_4": named("a b", "B12", "A name may have blanks inside"),
    "s06_name_5": named("ż", "B12", "A name may have any letters"),
    "s06_name_6": named("default", "B12", "A name may not be `default`"),
    "s06_name_7": named("n/../m", "B12", "A name is no path"),
    "s06_name_8": named("X" * 300, "B12", "A name may have 300 characters"),
    "s06_value_get_in_init": misuse("A15", "There is no state to read in init", init="get"),
    "s06_value_update_in_init": misuse("A15", "There is no state to write in init", init="update"),
    "s06_value_exists_in_init": misuse("A6", "Nothing exists in init", init="exists"),
    "s06_value_get_in_close": misuse("A15", "There is no state to read in close", close="get"),
    "s06_raise_in_init": misuse("A19 P9", "An error of init", init="boom"),
    "s06_raise_in_rows": misuse("A18", "An error of the handler of rows", rows="boom"),
    "s06_raise_in_timer": misuse("A19", "An error of the handler of timers", time_mode=PROCESSING,
                                 rows="register now", timer="boom"),
    "s06_raise_in_close": misuse("A19", "An error of close", close="boom"),
    "s06_out_none_at_all": misuse("A26", "A processor may emit nothing", rows="nothing"),
    "s08_null_and_order": scenario("keys", NONE, "B2 F22", "NULL is a key like any other; rows of a key keep their order"),
    "s09_partitions_changed": scenario("restart", NONE, "J1 J13", "Another number of workers after a restart"),
    "s09_downtime_and_timers": scenario("restart", PROCESSING, "E21 E31", "A timer that was due while nothing ran"),
    "s09_event_time_restart": scenario("restart", EVENT, "F10 E21", "Watermark and event-time timers over a restart"),
    "s09_restart_at_once_three_times": scenario("restart", NONE, "J1 B4", "Restarts with nothing to do"),
}


def variable(schema, val, text="", kind="v", **more):
    """The parameters of the program `evolution` that declare a variable and say what is written."""
    return dict(dict(kind=kind, schema=schema, val=str(val), text=text, name="v", map_key="k", ttl_ms="0"), **more)


def evolution(name, shows, about, first, *later, encoding="avro", time_mode=NONE):
    """What was recorded with the state encoding that lets schemas evolve, unless there is no such recording."""
    SCENARIOS[f"s07_{name}_{encoding}"] = scenario("evolution", time_mode, shows, about, parameters=first, counts=False) | {
        "later": later}


XY = variable("xy", 1, "s")
NO_VARIABLE = variable("", 0)
PLAIN = "unsaferow"
evolution("same", "K1", "The same schema after a restart", XY, variable("xy", 2, "t"))
evolution("add_field_at_end", "K1", "A field more, at the end", XY, variable("xyz", 2, "t"))
evolution("add_field_in_front", "K1", "A field more, in front", XY, variable("zxy", 2, "t"))
evolution("drop_field", "K3", "A field less", XY, variable("x", 2))
evolution("drop_then_add_again", "K3 K9", "A field less, then the same again", XY, variable("x", 2), variable("xy", 3, "u"))
evolution("rename_field", "K6", "A field of another name is another field", XY, variable("xyy", 2, "t"))
evolution("reorder_fields", "K4", "The same fields in another order", XY, variable("yx", 2, "t"))
evolution("widen_int_to_long", "K5", "INT becomes BIGINT", XY, variable("long xy", 2 ** 40, "t"))
evolution("widen_int_to_double", "K5", "INT becomes DOUBLE", XY, variable("double xy", 2, "t"))
evolution("narrow_long_to_int", "K7", "BIGINT does not become INT", variable("long xy", 1, "s"), variable("xy", 2, "t"))
evolution("int_to_string", "K8", "INT does not become STRING", XY, variable("string xy", 2, "t"))
evolution("nested_add_field", "K2", "A field more in a nested row", variable("nested a", 1), variable("nested ab", 2))
evolution("array_element_widen", "K5", "Elements of an ARRAY are widened", variable("ints", 1), variable("longs", 2 ** 40))
evolution("list_add_field", "K1", "A field more in the elements of a list", variable("x", 1, kind="l"),
          variable("xy", 2, "t", kind="l"))
evolution("map_value_add_field", "K1", "A field more in the values of a map", variable("x", 1, kind="m"),
          variable("xy", 2, "t", kind="m"))
evolution("map_key_change_type", "K15", "The key of a map does not change its type", variable("x", 1, kind="m"),
          variable("x", 2, kind="m", map_key="int"))
evolution("map_key_add_field", "K15", "Nor does it gain a field", variable("x", 1, kind="m"),
          variable("x", 2, kind="m", map_key="kl"))
evolution("value_to_list", "J4", "A value does not become a list", XY, variable("xy", 2, "t", kind="l"), encoding=PLAIN)
evolution("value_to_map", "J4", "A value does not become a map", XY, variable("xy", 2, "t", kind="m"), encoding=PLAIN)
evolution("state_removed", "J5", "A variable that is no longer declared", XY, NO_VARIABLE, encoding=PLAIN)
evolution("state_removed_and_back", "J5", "A variable comes back with what it had", XY, NO_VARIABLE,
          variable("xy", 3, "u"), encoding=PLAIN)
evolution("state_added", "J5", "A variable more", XY, variable("xy", 2, "t", extra="e"), encoding=PLAIN)
evolution("state_renamed", "J5", "A variable of another name is another variable", XY,
          variable("xy", 2, "t", name="w"), encoding=PLAIN)
evolution("ttl_added", "K10", "A value begins to expire", XY, variable("xy", 2, "t", ttl_ms="60000"), encoding=PLAIN,
          time_mode=PROCESSING)
evolution("ttl_removed", "K10", "A value no longer expires", variable("xy", 1, "s", ttl_ms="60000"),
          variable("xy", 2, "t"), encoding=PLAIN, time_mode=PROCESSING)
evolution("ttl_changed", "G13", "Another TTL", variable("xy", 1, "s", ttl_ms="60000"),
          variable("xy", 2, "t", ttl_ms="1000"), encoding=PLAIN, time_mode=PROCESSING)

for time_mode in (NONE, PROCESSING, EVENT):
    for output_mode in ("append", "update"):
        SCENARIOS[f"s06_mode_{output_mode}_{time_mode.replace('-', '')}"] = misuse(
            "A21", f"Output mode {output_mode} in time mode {time_mode}", time_mode=time_mode,
            settings={"query": {"output_mode": output_mode}})
    SCENARIOS[f"s06_mode_complete_{time_mode.replace('-', '')}"] = misuse(
        "A24", f"There is no output mode complete in time mode {time_mode}", time_mode=time_mode,
        settings={"query": {"output_mode": "complete"}})
SCENARIOS["s06_mode_bogus"] = misuse("A24", "An output mode that there is not", settings={"query": {"output_mode": "bogus"}})
SCENARIOS["s06_time_bogus"] = scenario("misuse", "bogus", "A22", "A time mode that there is not")

# Files that a scenario added to the source without a step of its own, before the step of that number.
ADDED = {
    name: {2: [[dict(key="b", ts="1970-01-01T00:02:10.000Z")], [dict(key="b", ts="1970-01-01T00:02:11.000Z")]]}
    for name in ("s04_back_to_back", "s04_back_to_back_1file")
}

# What the recorded scenario calls `STREAM_FAILED`, `PYTHON_EXCEPTION` and so on is the same failure with another
# wrapping: these are the conditions that count, first in the order of the list that the recording has.
WRAPPERS = {"STREAM_FAILED", "PYTHON_EXCEPTION", "STREAMING_PYTHON_RUNNER_INITIALIZATION_FAILURE"}
INVALID_STATE = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE"
INVALID_MODE = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_TIME_MODE"
DUPLICATE = "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED"

NOT_WITHOUT_ROWS = "a batch without rows runs as soon as a timer is due, also after a restart and for one that a handler registered in the past"
OWN_ERROR = "an author's own error has one code in every language and phase; the message names the handler, the key and the reason"
LOST_ERROR = "Spark's Python loses this error with its connection; here it has its code"
SETTINGS = "settings are checked when they are read, under one code that names the setting"

# (scenario, number of the step from 1): why we do something else, and what.
DIFFERS = {
    ("s01_list_put_empty_caught", 1): dict(
        why="a refused call changes nothing and can be caught; in Spark's Python it ends the connection",
        rows=[("a", "l.append", "None"), ("a", "l.putEmpty", "ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE"),
              ("a", "!l.exists", "True")]),
    ("s01_list", 2): dict(
        why="every element written counts; in Spark the put of a list forgets what was counted before",
        counts=dict(numRowsUpdated=5)),
    ("s01_map", 4): dict(
        why="a key without any value is refused, as a NULL key is in Spark's Scala; its Python stores it",
        rows=[("a", "m.update", "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE"), ("a", "m.iter", "[]")]),
    ("s03_in_timer_same", 3): dict(
        why="a timer that its own handler registers again stays, and fires in the next batch; Spark deletes it",
        rows=[("a", "TIMER", "(1002000, 1003000, None, [1002000], (1,))")]),
    ("s03_in_timer_delete_next", 2): dict(
        why="a due timer that a handler deletes before its turn does not fire; Spark fires from a snapshot",
        rows=[("a", "TIMER", "(1002000, 1006000, 'delNext', [1002000, 1002001, 1002002], (3,))"),
              ("a", "TIMER", "(1002002, 1006000, None, [1002002], (3,))")]),
    ("s04_in_timer_past", 3): dict(
        why=NOT_WITHOUT_ROWS, rows=[("a", "TIMER", "(109990, 'wm', 110000, 'now', 1003000, None, (1,))")]),
    ("s04_in_timer_past", 4): dict(
        why=NOT_WITHOUT_ROWS,
        rows=[("b", "ROW", "(120001, None, None, None)"), ("b", "rows-done", "('wm', 110000, 'now', 1004000)")]),
    ("s04_in_timer_atWm", 3): dict(
        why=NOT_WITHOUT_ROWS, rows=[("a", "TIMER", "(110000, 'wm', 110000, 'now', 1003000, None, (1,))")]),
    ("s04_in_timer_atWm", 4): dict(
        why=NOT_WITHOUT_ROWS,
        rows=[("b", "ROW", "(120001, None, None, None)"), ("b", "rows-done", "('wm', 110000, 'now', 1004000)")]),
    ("s04_no_watermark", 1): dict(
        why="event time without a watermark is refused: no timer later than 0 could ever fire",
        error="WATERMARK_MISSING"),
    ("s04_no_watermark", 2): dict(why="", error="WATERMARK_MISSING"),
    ("s04_no_watermark", 3): dict(why="as in the first step", error="WATERMARK_MISSING"),
    ("s04_no_watermark", 4): dict(why="", error="WATERMARK_MISSING"),
    ("s05_no_input", 1): dict(
        why="the initial state is read before the first input and needs none; its due timers fire in the batch behind it",
        rows=[("z", "TIMER", "(999999, (7,))"), ("y", "TIMER", "(1001000, (5,))")]),
    ("s05_no_input", 3): dict(
        why="as in the first step", rows=[("q", "ROWS", "(1,)"), ("w", "TIMER", "(1003000, (1,))")]),
    ("s05_key_type_differs", 1): dict(
        why="a key of another type than the input's is refused; Spark casts it", error="INITIAL_STATE_KEY_MISMATCH"),
    ("s06_none_list_timers", 1): dict(why=LOST_ERROR, error=INVALID_MODE),
    ("s06_none_time_values", 1): dict(
        why="a batch has a time in every mode, and a watermark of 0 until there is one; Spark's Python says -1, its Scala as we do",
        rows=[("a", "now", "1001000"), ("a", "wm", "0")]),
    ("s06_dup_same_type", 1): dict(
        why="Spark's Python has no condition for this; its Scala has ours", error=DUPLICATE),
    ("s06_raise_in_init", 1): dict(why=OWN_ERROR, error="TRANSFORM_WITH_STATE_USER_FUNCTION_ERROR", says=["init", "boom"]),
    ("s06_raise_in_rows", 1): dict(why=OWN_ERROR, error="TRANSFORM_WITH_STATE_USER_FUNCTION_ERROR", says=["handle-input-rows", '"a"', "boom"]),
    ("s06_raise_in_timer", 1): dict(why=OWN_ERROR, error="TRANSFORM_WITH_STATE_USER_FUNCTION_ERROR", says=["handle-expired-timer", '"a"', "boom"]),
    ("s06_raise_in_close", 1): dict(why=OWN_ERROR, error="TRANSFORM_WITH_STATE_USER_FUNCTION_ERROR", says=["close", "boom"]),
    ("s06_mode_bogus", 1): dict(why=SETTINGS, error="CONFIG_INVALID", says=["bogus"]),
    ("s06_time_bogus", 1): dict(why=SETTINGS, error="CONFIG_INVALID", says=["bogus"]),
    ("s07_ttl_added_unsaferow", 2): dict(
        why="a TTL may come: it holds for what is written from then on",
        rows=[("a", "got", "(1, 's')"), ("b", "got", "None")]),
    ("s07_ttl_removed_unsaferow", 2): dict(
        why="a TTL may go: what was written with it expires, what is written from then on does not",
        rows=[("a", "got", "(1, 's')"), ("b", "got", "None")]),
    ("s07_value_to_map_unsaferow", 2): dict(
        why="a change of kind has one condition, whichever the kinds", error="STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE"),
    ("s09_downtime_and_timers", 2): dict(
        why=NOT_WITHOUT_ROWS, rows=[("a", "TIMER", "(1005000, 'now', 1050001, 'wm', 0, (1,))")]),
    ("s09_event_time_restart", 2): dict(
        why=NOT_WITHOUT_ROWS, rows=[("a", "TIMER", "(105000, 'now', 2001000, 'wm', 110000, (1,))")]),
    ("s09_event_time_restart", 3): dict(
        why="the batch without rows before it moved the watermark that rows are late by",
        rows=[("a", "ROWS", "(2, [6], 'now', 2002000, 'wm', 110000, 'timers', [])")]),
}
for time_mode in ("none", "processingtime", "eventtime"):
    DIFFERS[f"s06_mode_complete_{time_mode}", 1] = dict(why=SETTINGS, error="CONFIG_INVALID", says=["complete"])


def recorded():
    """All recorded scenarios by name; the runs of one that was restarted become steps."""
    found = {}
    for path in sorted((HERE / "recorded").glob("s0*.json")):
        for entry in json.loads(path.read_text()):
            steps = entry.get("steps", [])
            for number, run in enumerate(entry.get("runs", [])):
                for position, step in enumerate(run["steps"]):
                    restart = number > 0 and position == 1
                    steps = steps + [dict(step, restart=restart, partitions=run.get("partitions"))]
            found[entry["name"]] = dict(entry, steps=steps)
    return found


def main():
    cases = {name + ".toml": case(name, how, known) for known in [recorded()] for name, how in SCENARIOS.items()}
    missing = {name for name, _ in DIFFERS} - SCENARIOS.keys()
    assert not missing, f"DIFFERS names scenarios that there are not: {missing}"
    if "--check" in sys.argv:
        there = {path.name: path.read_text() for path in CASES.glob("*.toml") if path.name != "query.toml"}
        wrong = sorted(name for name in cases.keys() | there.keys() if cases.get(name) != there.get(name))
        if wrong:
            sys.exit(f"not as generate.py writes them: {', '.join(wrong)}; run tests/conformance/generate.py")
        print(f"{len(cases)} cases are as recorded")
        return
    for path in CASES.glob("*.toml"):
        if path.name != "query.toml":
            path.unlink()
    for name, text in cases.items():
        (CASES / name).write_text(text)
    print(f"{len(cases)} cases written")


def case(name, how, known):
    entry = known[name]
    settings = {
        "processor": {"parameters": dict(program=how["program"], **how["parameters"])},
        "query": {"time_mode": how["time_mode"], "output_mode": "update"},
    }
    if how["watermark"]:
        settings["query"]["watermark"] = {"column": "ts", "delay": how["watermark"]}
    for table, values in how["settings"].items():
        settings.setdefault(table, {}).update(values)
    if how["initial"] is not None:
        settings["initial_state"] = {"schema": how["initial_schema"] or "key STRING, n BIGINT, timer BIGINT"}
    out = [f"# Made by generate.py of Spark's recorded answers, scenario {name}. Change that, not this.",
           f"about = {json.dumps(how['about'], ensure_ascii=False)}", f"shows = {json.dumps(how['shows'])}"]
    out += [f"settings.{table}.{key} = {toml(value)}" for table, values in settings.items() for key, value in values.items()]
    if how["initial"] is not None:
        out.append(f"initial_state = {lines(how['initial'])}")
    number = 0
    partitions = None
    later = iter(how.get("later", ()))
    for step in entry["steps"]:
        if step["op"] == "start" and not step.get("batches") and not step.get("error"):
            continue
        number += 1
        for file in ADDED.get(name, {}).get(number, []):
            out += ["", "[[step]]", f"rows = {lines([input_row(row, how) for row in file])}", 'run = "nothing"']
        out += ["", "[[step]]"]
        if step.get("restart") and "later" in how:
            out.append(f"settings.processor.parameters = {toml(next(later))}")
        out += step_lines(name, number, step, how, partitions)
        partitions = step.get("partitions", partitions)
    return "\n".join(out) + "\n"


def step_lines(name, number, step, how, partitions):
    out = []
    if step.get("label"):
        out.append(f"about = {json.dumps(step['label'])}")
    if step.get("restart"):
        out.append('restart = "clean"')
        if step["partitions"] and partitions != step["partitions"]:
            out.append(f"settings.query.workers = {step['partitions']}")
    if "clockMs" in step:
        out.append(f"clock = {step['clockMs']}")
    if step.get("input"):
        out.append(f"rows = {lines([input_row(row, how) for row in step['input']])}")
    batches = step.get("batches", [])
    rows = [output_row(row, how, step) for batch in batches for row in batch["rows"]]
    error = [condition for condition in step.get("error", []) if condition not in WRAPPERS]
    differs = DIFFERS.get((name, number), {})
    if "rows" in differs or "error" in differs:
        return out + ours(differs, rows)
    if rows:
        out.append(f"expect = {lines(rows)}")
    if step.get("error"):
        assert len(error) == 1, f"{name} step {number}: which condition of {step['error']} counts?"
        out.append(f"error = {json.dumps(error[0])}")
    if how["counts"] and len(batches) == 1 and (batches[0]["in"] or batches[0]["state"]["removed"]):
        out.append(f"metrics = {toml(counts(batches[0]['state']) | differs.get('counts', {}))}")
    if differs:
        out.append(f"differs = {json.dumps(differs['why'])}")
    return out


def ours(differs, rows):
    """What we do where that is not what was recorded."""
    out = []
    if differs.get("rows"):
        out.append(f"expect = {lines([dict(key=key, ev=ev, out=text) for key, ev, text in differs['rows']])}")
    if differs.get("error"):
        code = json.dumps(differs["error"])
        says = differs.get("says")
        out.append(f"error = {{ code = {code}, says = {toml(says)} }}" if says else f"error = {code}")
    if differs["why"]:
        out.append(f"differs = {json.dumps(differs['why'])}")
        out.append(f"reference = {lines(rows) if rows else repr('')}")
    return out


COUNTS = {"total": "numRowsTotal", "updated": "numRowsUpdated", "removed": "numRowsRemoved",
          "droppedByWatermark": "numRowsDroppedByWatermark", "numRegisteredTimers": "numRegisteredTimers",
          "numDeletedTimers": "numDeletedTimers", "numValuesRemovedDueToTTLExpiry": "numValuesRemovedDueToTTLExpiry"}


def counts(state):
    return {ours: state.get(theirs, 0) for theirs, ours in COUNTS.items()}


def input_row(row, how):
    """Columns that the scenarios name differently: the number is `b`."""
    named = {"d": "b", "x": "b"}
    out = {}
    for column, value in row.items():
        if value is not None and not (how["program"] == "misuse" and column == "x"):
            out[named.get(column, column)] = value
    return {column: out[column] for column in ("key", "op", "a", "b", "ts") if column in out}


def output_row(row, how, step):
    if how["program"] == "misuse":
        if row.get("key") in ("now", "wm"):
            return dict(key="a", ev=row["key"], out=str(row["n"]))
        return dict(key=row["key"], ev="n", out=str(row["n"]))
    if how["program"] == "evolution":
        # What Spark prints of a nested row is its class and the names of its fields.
        return dict(key=row["key"], ev="got", out=re.sub(r"Row\((.*?)\)", lambda row: f"({re.sub(r'[a-z]+=', '', row[1])})", row["got"]))
    if how["program"] == "keys":
        (key,) = ast.literal_eval(row["key"])
        return dict(key=key, ev="ROWS", out=row["out"])
    out = row["out"]
    if how["program"] in ("timers", "restart"):
        # Spark lists timers in no order; we list them by time.
        out = re.sub(r"\[-?\d+(?:, -?\d+)*\]", lambda found: str(sorted(ast.literal_eval(found[0]))), out)
    if how["time_mode"] == NONE:
        # The times that Spark's Python gives in this mode: see s06_none_time_values.
        out = out.replace("'now', -1, 'wm', -1", f"'now', {step['clockMs']}, 'wm', 0")
    return dict(key=row["key"], ev=row.get("ev") or row["op"], out=out)


def lines(rows):
    text = "\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    assert "'''" not in text
    return f"'''\n{text}\n'''"


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    main()
