"""One reader for each format of a corpus. A reader cuts a source into records; `hilap.corpus.rows` checks them."""
