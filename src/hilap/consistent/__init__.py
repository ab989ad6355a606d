"""Consistent label sets, in compiled loops: the best one, scores made consistent, and weights learned for both.

`closed_sets`: the closed set with the largest sum of scores, and the mean of closed sets nearest to given values.
`condensing`: for many documents, the best sets of all sizes at once, which is the isotonic regression of the scores.
`structured`: linear weights for which each document's own set beats all other closed sets.

Import the modules where they are used: numba takes a moment to load.
"""
