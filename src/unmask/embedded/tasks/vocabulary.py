"""The words in the problems of the embedded model."""

from __future__ import annotations

WOMEN = ("Ann", "Eva", "Ida", "Joy", "Mia", "Zoe")
MEN = ("Bob", "Dan", "Leo", "Max", "Sam", "Tom")
GOODS = ("apples", "books", "cards", "coins", "eggs", "pens", "shells", "stamps")
BOXES = ("bags", "boxes", "packs")
ITEMS = (
    "ant", "bee", "cat", "cow", "crow", "deer", "dog", "duck", "eel", "fox", "frog", "goat",
    "hen", "lamb", "lion", "mole", "newt", "owl", "pig", "rat", "seal", "toad", "wolf", "yak",
)  # fmt: skip
FUNCTIONS = ("change", "compute", "convert", "f", "g", "run", "solve", "work")
