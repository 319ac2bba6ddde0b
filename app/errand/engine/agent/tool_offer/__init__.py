"""How tools are offered to a model: names that models know, short descriptions, and sets by the size of the model.

Start at `offer.py`; `presentations.py` has the texts.
"""
