import unittest

from tidemill.testing import TestQuery

from processor import QUIET_MS, Counter


class CounterTest(unittest.TestCase):
    def test_visits_are_counted_until_half_an_hour_has_passed_without_one(self):
        query = TestQuery(Counter, time_mode="ProcessingTime")
        query.input("ada", [("/",), ("/prices",)])
        self.assertEqual(query.run_batch(), [("ada", 2, True)])

        query.set_time_ms(QUIET_MS)
        self.assertEqual(query.run_batch(), [("ada", 2, False)])
        self.assertIsNone(query.value_of("visits", "ada"))
