"""The rows around those in view: kept and measured ahead, so that scrolling finds them ready."""


def band(shown: range, count: int) -> range:
    """Of `count` rows those in view and half as many above and below."""
    many = len(shown) // 2 + 1
    return range(max(0, shown.start - many), min(count, shown.stop + many))


def near(shown: range, count: int) -> list[int]:
    """The band without the view, nearest first."""
    around = [index for index in band(shown, count) if index not in shown]
    return sorted(around, key=lambda index: min(abs(index - shown.start), abs(index - shown.stop)))
