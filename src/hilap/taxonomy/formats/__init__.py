"""One file for each taxonomy format or close family: `read_*` gives a `Draft`, `write_*` writes a `Taxonomy`."""
