from processor import Counter
from tidemill.testing import TestQuery


def test_counting_begins_at_the_initial_state():
    query = TestQuery(Counter)
    query.initial_state("x", [(10,)]).initial_state("y", [(5,)])
    query.run_initial_state()
    query.input("x", [("a",), ("b",)])
    assert query.run_batch() == [("x", 12)]
    assert query.value_of("count", "y") == (5,)
