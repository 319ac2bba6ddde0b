"""Asks in the transcript: one row kind, with a card for each kind of ask.

`ask.py` selects the card and has those of questions, limits and unknown outcomes; `approval.py` is the card of
approvals, `offers.py` what it may allow from now on. Start with ask_card.py.
"""
