"""What is built on MapReduce and the engine: matrices over a semiring, jobs people know."""
