"""How signatures of thoughts begin, by the API that they came from; those of Anthropic's API are as they came."""

# The fields that came beside a chat completion follow, as JSON.
CHAT_SIGNED = "chat:"
# The id of the item and its encrypted content follow.
RESPONSES_SIGNED = "reasoning:"
