"""The inner loops of walking and of its gradients, compiled with numba, on numpy arrays.

Nothing here knows tensors or taxonomies: `hilap.walker` and `hilap.pairs` hand the arrays over. Import these modules
where they are used, not at the top of another: numba takes a moment to load, and a kernel some seconds to compile when
it is first called for a width of float. The machine code is kept in `__pycache__` beside the source or, where that
cannot be written, in the user's cache folder (`NUMBA_CACHE_DIR` names another); where nothing can be written, every
process compiles anew.

Every row is computed by itself and added up in an order of its own, so a document's bits do not depend on its batch,
nor on the number of threads, nor on the BLAS. Three things make it fast: hidden units that are zero are skipped (ReLU
leaves about half of them), only candidates are scored, and no temporary is made.

Letters as in `hilap.policy`: R walks, L labels, A = L + 1, H hidden, C width, T steps, M decisions, P pairs.
"""
