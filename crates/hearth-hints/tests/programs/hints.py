# SPDX-License-Identifier: MIT OR Apache-2.0
"""What Python's threads say of their data. Runs as if on CPUs 0 to 3 (HEARTH_TOPOLOGY)."""

import ctypes
import os
import threading
import unittest

import hearth_hints
from hearth_hints import within


class Within(unittest.TestCase):
    def test_a_block_is_within_its_fragment_and_then_within_the_one_around(self):
        with within(7) as outer:
            with within("orders"):
                self.assertEqual(hearth_hints.fragment() >> 63, 1)
            self.assertEqual((hearth_hints.fragment(), outer.number), (7, 7))
        self.assertEqual(hearth_hints.fragment(), 0)
        self.assertIn(hearth_hints.home(7), range(4))

    def test_an_exception_leaves(self):
        with self.assertRaises(KeyError), within(7):
            raise KeyError
        self.assertEqual(hearth_hints.fragment(), 0)

    def test_one_may_be_kept_and_entered_by_many_threads(self):
        orders, seen = within("orders"), []

        def work():
            with orders, orders:
                seen.append(hearth_hints.fragment())

        threads = [threading.Thread(target=work) for _ in range(8)]
        before = hearth_hints.counts()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(seen, [orders.number] * 8)
        self.assertEqual(hearth_hints.counts().enters - before.enters, 16)
        self.assertEqual(hearth_hints.counts().unmatched, 0)

    def test_data_is_the_same_fragment_whoever_holds_it(self):
        data = bytearray(100)
        here = within(data)
        self.assertEqual(here.number, within(memoryview(data)).number)
        self.assertEqual(here.number, within((ctypes.c_char * 100).from_buffer(data)).number)
        self.assertNotEqual(here.number, within(memoryview(data)[50:]).number)
        data.extend(data)  # nothing holds it any more

    def test_what_is_no_fragment_is_refused(self):
        for wrong, error in [(-1, ValueError), (1 << 64, ValueError), (b"name", TypeError), (None, TypeError),
                             (0.5, TypeError), (bytearray(), TypeError)]:
            with self.subTest(wrong), self.assertRaises(error):
                within(wrong)

    def test_a_child_of_fork_inherits_what_it_was_told_to(self):
        for whether in [True, False]:
            hearth_hints.inherit(whether)
            with within(7):
                child = os.fork()
                if not child:
                    os._exit(hearth_hints.fragment())
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7 if whether else 0)

    def test_the_rest_answers(self):
        self.assertTrue(hearth_hints.is_here("nobody was here"))
        self.assertIsNone(hearth_hints.home("nobody was here"))
        self.assertGreaterEqual(hearth_hints.cpus(), 1)


if __name__ == "__main__":
    unittest.main()
