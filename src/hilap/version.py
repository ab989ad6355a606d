"""The version, where every layer can see it."""

__version__ = "0.1.0.dev0"
