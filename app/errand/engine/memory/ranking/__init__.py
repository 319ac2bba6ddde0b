"""The order of what a search in memory finds: question.py parses the question, ranking.py scores entries."""
