package io.deepep;

/** Collects what the ranks of a group threw, in the order of time. */
final class RankFailures {
    private RankFailedException first;

    synchronized void add(int rank, Throwable failure) {
        RankFailedException wrapped = new RankFailedException(rank, failure);
        if (first == null) {
            first = wrapped;
        } else {
            first.addSuppressed(wrapped);
        }
    }

    synchronized void throwIfAny() {
        if (first != null) {
            throw first;
        }
    }
}
