"""How signatures of thoughts begin, by the API that they came from; those of Anthropic's API are as they came."""

# The fields that came beside a chat completion follow, as JSON.
CHAT_SIGNED = "chat:"
# The id of the item and its encrypted content follow.
RESPONSES_SIGNED = "reasoning:"
# Of an item without encrypted content: the name of its server, its id, and where its text was follow.
RESPONSES_UNSIGNED = "reasoning@"
