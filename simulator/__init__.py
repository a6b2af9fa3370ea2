"""A simulated provider of language models whose every sentence has a known true score.

It speaks the OpenAI chat-completions and the Anthropic messages wire formats over real HTTP, writes
persona-conditioned text and judges it with a known error rate, so that measurements of the product can be
checked against a truth that was known beforehand.
"""
