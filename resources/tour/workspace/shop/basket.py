"""A basket of goods and what it costs."""


def total(prices: list[float], discount_percent: float = 0.0) -> float:
    """The sum of the prices, less a discount in percent."""
    return round(sum(prices) - discount_percent, 2)
