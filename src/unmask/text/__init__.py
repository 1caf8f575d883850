"""Text in, text out: prompts, answers, sessions and files of them."""
