package io.deepep.djl.decoder;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/**
 * Prompts that a client waits for. Prompt {@code i} is the {@code i / numRanks}th of the share
 * {@code i % numRanks}; the scheduler says which rank has which share.
 */
final class Request {
    final CompletableFuture<List<long[]>> answer = new CompletableFuture<>();

    /** The rank of share 0; the others follow. */
    int firstRank;

    /** Prompts of each share that is not empty. */
    private final List<List<long[]>> dealt;

    private final List<Sampler> samplers;
    private final Set<Integer> endTokens;
    private final int numRanks;
    private final long[][] added;
    private final int numNewTokens;
    private final List<Share> shares = new ArrayList<>();

    /**
     * @param samplers of each share
     */
    Request(
            List<List<long[]>> dealt,
            int numNewTokens,
            List<Sampler> samplers,
            Set<Integer> endTokens) {
        this.dealt = dealt.stream().filter(prompts -> !prompts.isEmpty()).toList();
        this.numNewTokens = numNewTokens;
        this.samplers = samplers;
        this.endTokens = endTokens;
        numRanks = dealt.size();
        added = new long[dealt.stream().mapToInt(List::size).sum()][numNewTokens];
    }

    /** The prompts of every share, at most one for each rank. */
    List<List<long[]>> dealt() {
        return dealt;
    }

    int rankOf(int share) {
        return (firstRank + share) % numRanks;
    }

    /** Gives the next share its slots. */
    void place(int[] slots) {
        int share = shares.size();
        shares.add(new Share(samplers.get(share), slots, dealt.get(share)));
    }

    List<Share> shares() {
        return shares;
    }

    /** The share of a rank, or none. */
    List<Share> shareOf(int rank) {
        int share = Math.floorMod(rank - firstRank, numRanks);
        return share < shares.size() ? List.of(shares.get(share)) : List.of();
    }

    private int made() {
        return shares.getFirst().made;
    }

    int numLeft() {
        return numNewTokens - made();
    }

    /** Takes what a round has given the slots of each rank. */
    void take(long[][][] ofRanks) {
        for (int i = 0; i < added.length; i++) {
            int share = i % numRanks;
            shares.get(share).copy(ofRanks[rankOf(share)], i / numRanks, added[i]);
        }
    }

    /** Whether nothing more is to be made for it, also because nobody waits for its answer. */
    boolean isDone() {
        return answer.isDone() || numLeft() == 0 || Decoder.haveAllEnded(added, made(), endTokens);
    }

    void answer() {
        answer.complete(Arrays.stream(added).map(tokens -> Arrays.copyOf(tokens, made())).toList());
    }
}
