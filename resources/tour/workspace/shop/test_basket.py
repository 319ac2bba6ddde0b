"""What a basket must cost."""

import unittest

from basket import total


class BasketTest(unittest.TestCase):
    def test_an_empty_basket_costs_nothing(self) -> None:
        self.assertEqual(total([]), 0)

    def test_prices_are_added(self) -> None:
        self.assertEqual(total([1.5, 2.5]), 4)

    def test_a_discount_is_a_share_of_the_sum(self) -> None:
        self.assertEqual(total([100, 100], discount_percent=10), 180)


if __name__ == "__main__":
    unittest.main()
