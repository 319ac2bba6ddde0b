"""The agents of a conversation: the bar above the composer and its dialogs. Personalities are edited in `settings`."""
