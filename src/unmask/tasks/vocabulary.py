"""The words that the embedded model's problems are made of."""

from __future__ import annotations

WOMEN = ("Ann", "Eva", "Ida", "Joy", "Mia", "Zoe")
MEN = ("Bob", "Dan", "Leo", "Max", "Sam", "Tom")
GOODS = ("apples", "books", "cards", "coins", "eggs", "pens", "shells", "stamps")
BOXES = ("bags", "boxes", "packs")
ITEMS = (
    "ant", "bat", "bee", "cat", "cow", "crab", "crow", "deer", "dog", "dove", "duck", "eel",
    "elk", "fox", "frog", "goat", "hare", "hawk", "hen", "lamb", "lion", "mole", "moth", "mouse",
    "newt", "owl", "pig", "pony", "rat", "seal", "snail", "swan", "toad", "wolf", "worm", "yak",
)  # fmt: skip
FUNCTIONS = ("change", "compute", "convert", "f", "g", "run", "solve", "work")
