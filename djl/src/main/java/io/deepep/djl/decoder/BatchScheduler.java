package io.deepep.djl.decoder;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Phaser;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Continuous batching: which requests the ranks serve together. Ranks work in rounds. In each, they
 * read the prompts of new requests and then add up to 16 tokens to all sequences; between rounds,
 * requests that are done give their slots back, and waiting ones get theirs, in their order.
 */
final class BatchScheduler {
    private final DecoderOptions options;

    /** A party for each rank; a phase is a round. Terminated when the ranks are to end. */
    private final Phaser rounds;

    /** Done when all ranks have come to their first round; fails as the first rank does. */
    private final CompletableFuture<Void> loaded = new CompletableFuture<>();

    private final Deque<Request> waiting = new ArrayDeque<>(); // guarded by this
    private boolean closed; // guarded by this
    private Throwable failure; // guarded by this

    // Written between rounds by the rank that comes last, and then guarded by this; read by all
    // within a round.
    private final List<Request> running = new ArrayList<>();
    private final List<Request> read = new ArrayList<>();
    private final List<BitSet> usedSlots;
    private int numSteps;
    private int nextRank;

    /** What each rank's last round has added to its slots. */
    private final long[][][] added;

    BatchScheduler(int numRanks, DecoderOptions options) {
        this.options = options;
        usedSlots = Stream.generate(BitSet::new).limit(numRanks).toList();
        added = new long[numRanks][][];
        rounds =
                new Phaser(numRanks) {
                    @Override
                    protected boolean onAdvance(int phase, int numParties) {
                        return !planRound();
                    }
                };
    }

    /** Returns when all ranks have loaded the model. */
    void awaitLoaded() {
        loaded.join();
    }

    /** Serves requests on a rank until the scheduler is closed or a rank fails. */
    void serve(Decoder decoder, int rank) {
        while (true) {
            rounds.arriveAndAwaitAdvance();
            if (rounds.isTerminated()) { // the call above does not tell the rank that came last
                return;
            }
            if (!read.isEmpty()) {
                decoder.read(sharesOf(read, rank));
            }
            added[rank] = decoder.step(sharesOf(running, rank), numSteps);
        }
    }

    private static List<Share> sharesOf(List<Request> requests, int rank) {
        return requests.stream().flatMap(request -> request.shareOf(rank).stream()).toList();
    }

    /**
     * Adds a request, whose {@code answer} is completed when it is done, cancelled if the scheduler
     * is closed before it has begun, and fails as the ranks do.
     */
    synchronized void add(Request request) {
        if (failure != null) {
            throw new CompletionException(failure);
        }
        if (closed) {
            request.answer.cancel(false);
            return;
        }
        waiting.add(request);
        notifyAll();
    }

    /** Cancels the answer of a request; if it runs, it runs to the end of the round. */
    synchronized void withdraw(Request request) {
        request.answer.cancel(false);
        waiting.remove(request);
    }

    /** Ends the ranks after the requests that run. */
    synchronized void close() {
        closed = true;
        waiting.forEach(request -> request.answer.cancel(false));
        waiting.clear();
        notifyAll();
    }

    /** Fails all requests, and ends the other ranks: they can do nothing without this one. */
    synchronized void fail(Throwable ofRank) {
        if (failure == null) {
            failure = ofRank;
            loaded.completeExceptionally(ofRank);
            Stream.concat(running.stream(), waiting.stream())
                    .forEach(request -> request.answer.completeExceptionally(ofRank));
            waiting.clear();
        }
        rounds.forceTermination();
    }

    /** What has ended the ranks, or null. */
    synchronized Throwable failure() {
        return failure;
    }

    synchronized int numRunning() {
        return failure == null ? running.size() : 0;
    }

    synchronized int numWaiting() {
        return waiting.size();
    }

    /** Whether there is another round. */
    private synchronized boolean planRound() {
        loaded.complete(null);
        for (Request request : List.copyOf(running)) {
            request.take(added);
            if (request.isDone()) {
                finish(request);
            }
        }
        awaitWork();
        read.clear();
        int[] promptTokens = new int[usedSlots.size()];
        while (!waiting.isEmpty() && place(waiting.peek(), promptTokens)) {
            read.add(waiting.remove());
        }
        running.addAll(read);
        // Prompts that are read get their first new token with it.
        int most = Decoder.ENDS_EVERY - (read.isEmpty() ? 0 : 1);
        numSteps = running.stream().mapToInt(Request::numLeft).reduce(most, Math::min);
        return !running.isEmpty();
    }

    private void finish(Request request) {
        running.remove(request);
        for (int i = 0; i < request.shares().size(); i++) {
            BitSet used = usedSlots.get(request.rankOf(i));
            IntStream.of(request.shares().get(i).slots).forEach(used::clear);
        }
        request.answer();
    }

    private void awaitWork() {
        try {
            while (running.isEmpty() && waiting.isEmpty() && !closed) {
                wait();
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("a rank was interrupted between requests", stopped);
        }
    }

    /** Gives a request slots, if ranks have enough of them, and time to read it in this round. */
    private boolean place(Request request, int[] promptTokens) {
        int numRanks = usedSlots.size();
        for (int i = 0; i < numRanks; i++) {
            request.firstRank = (nextRank + i) % numRanks;
            if (fits(request, promptTokens)) {
                for (List<long[]> prompts : request.dealt()) {
                    int rank = request.rankOf(request.shares().size());
                    promptTokens[rank] += numTokens(prompts);
                    request.place(takeSlots(usedSlots.get(rank), prompts.size()));
                }
                nextRank = request.rankOf(request.shares().size());
                return true;
            }
        }
        return false;
    }

    private boolean fits(Request request, int[] promptTokens) {
        for (int share = 0; share < request.dealt().size(); share++) {
            List<long[]> prompts = request.dealt().get(share);
            int rank = request.rankOf(share);
            int numFree = options.maxSequences() - usedSlots.get(rank).cardinality();
            if (prompts.size() > numFree
                    || numTokens(prompts) > options.maxPromptTokens() - promptTokens[rank]) {
                return false;
            }
        }
        return true;
    }

    private static int numTokens(List<long[]> prompts) {
        return prompts.stream().mapToInt(prompt -> prompt.length).sum();
    }

    private static int[] takeSlots(BitSet used, int count) {
        int[] slots = new int[count];
        for (int i = 0; i < count; i++) {
            slots[i] = used.nextClearBit(0);
            used.set(slots[i]);
        }
        return slots;
    }
}
