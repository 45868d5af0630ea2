package io.deepep.testkit;

import java.util.function.Predicate;

/**
 * What all cards of a folder have done, as they have last told.
 *
 * @param writes entries that move data
 * @param bytes of these
 * @param signals atomics; under NVSHMEM's IBRC writes of a word that the entry itself holds
 * @param doorbells a lower bound: of two in quick succession, a card may see one
 * @param completions that entries asked for
 */
public record CardCounts(long writes, long bytes, long signals, long doorbells, long completions) {
    private static final CardCounts NONE = new CardCounts(0, 0, 0, 0, 0);
    private static final long PATIENCE_NANOS = 60_000_000_000L;
    private static final long PAUSE_MILLIS = 300;

    /** What cards have told so far. They do so when they have been idle for a moment. */
    public static CardCounts read(CardFolder folder) {
        return folder.told("sum ").stream().map(CardCounts::of).reduce(NONE, CardCounts::plus);
    }

    /** Everything so far, once cards tell the same twice. */
    public static CardCounts settled(CardFolder folder) throws InterruptedException {
        return settledSince(folder, NONE, all -> true);
    }

    /**
     * What has been added to {@code before}, once cards tell the same twice and {@code complete}
     * holds of it; at the latest after a minute, whatever it is then.
     */
    public static CardCounts settledSince(
            CardFolder folder, CardCounts before, Predicate<CardCounts> complete)
            throws InterruptedException {
        long deadline = System.nanoTime() + PATIENCE_NANOS;
        CardCounts last = read(folder);
        while (true) {
            Thread.sleep(PAUSE_MILLIS);
            CardCounts now = read(folder);
            CardCounts added = now.minus(before);
            boolean settled = now.equals(last) && complete.test(added);
            if (settled || System.nanoTime() > deadline) {
                return added;
            }
            last = now;
        }
    }

    private static CardCounts of(String line) {
        long inline = CardFolder.number(line, "inline");
        return new CardCounts(
                CardFolder.number(line, "writes"),
                CardFolder.number(line, "bytes") - Long.BYTES * inline,
                CardFolder.number(line, "atomics") + inline,
                CardFolder.number(line, "doorbells"),
                CardFolder.number(line, "completions"));
    }

    private CardCounts plus(CardCounts other) {
        return new CardCounts(
                writes + other.writes,
                bytes + other.bytes,
                signals + other.signals,
                doorbells + other.doorbells,
                completions + other.completions);
    }

    private CardCounts minus(CardCounts before) {
        return new CardCounts(
                writes - before.writes,
                bytes - before.bytes,
                signals - before.signals,
                doorbells - before.doorbells,
                completions - before.completions);
    }

    /** Writes and signals. */
    public long entries() {
        return writes + signals;
    }
}
