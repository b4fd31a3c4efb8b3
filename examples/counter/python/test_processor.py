from processor import Counter
from tidemill.testing import TestQuery


def numbers(*values):
    return [(n,) for n in values]


def test_counts_go_on_from_batch_to_batch():
    query = TestQuery(Counter)
    query.input("a", numbers(1, 2, 1)).input("b", numbers(7, 7))
    assert query.run_batch() == [("a", 3, 3, 2), ("b", 2, 2, 1)]
    query.input("a", numbers(9))
    assert query.run_batch() == [("a", 4, 4, 3)]
    assert query.list_of("seen", "a") == numbers(1, 2, 1, 9)
    assert query.map_of("times", "a") == {(1,): (2,), (2,): (1,), (9,): (1,)}


def test_a_key_with_more_rows_than_a_chunk_is_one_sequence():
    query = TestQuery(Counter).small_chunks(groups=2, rows=3)
    query.input("a", numbers(*[1] * 20)).input("b", numbers(2, 2))
    assert [row["count"] for row in query.run_batch()] == [20, 2]
