"""Small denoisers whose answers are known exactly, for tests and demonstrations."""
