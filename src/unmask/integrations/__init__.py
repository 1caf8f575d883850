"""Adapters that run our rules inside other programs; a folder for each host."""
