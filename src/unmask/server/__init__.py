"""The HTTP server: OpenAI's API over one batch that stays full. Needs the extra `serve`."""
