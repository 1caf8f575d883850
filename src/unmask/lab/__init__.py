"""Benchmarks of real models: how problems are asked, and how answers are judged."""
