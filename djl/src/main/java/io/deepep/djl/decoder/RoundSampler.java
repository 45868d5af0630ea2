package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/**
 * Chooses the tokens of all shares of a rank in a round: together where samplers are this
 * library's, and for every other share with its own. What that takes is copied to the device once a
 * round, because the host waits for the GPU when it copies to it.
 */
final class RoundSampler {
    /** Rows of logits, and the slots that get their tokens. */
    private record Group(Sampler sampler, NDIndex rows, NDIndex slots) {}

    /** Row {@code index} of a share, and where it is among all shares' rows. */
    private record Row(Share share, int index, long position) {
        Object group() {
            return switch (share.sampler) {
                case Greedy greedy -> greedy;
                case TopP sampler -> sampler.keepsAll();
                default -> share;
            };
        }

        long slot() {
            return share.slots[index];
        }

        Stream<TopP.Row> topP() {
            return share.sampler instanceof TopP sampler
                    ? Stream.of(new TopP.Row(sampler, index))
                    : Stream.empty();
        }
    }

    private final List<Group> groups;

    /** For logits of the rows of one share after the other, once. */
    static RoundSampler ofRows(List<Share> shares, NDManager scope) {
        return new RoundSampler(shares, false, 1, scope);
    }

    /** For logits of all slots, {@code numSteps} times. */
    static RoundSampler ofSlots(List<Share> shares, int numSteps, NDManager scope) {
        return new RoundSampler(shares, true, numSteps, scope);
    }

    private RoundSampler(List<Share> shares, boolean ofSlots, int numSteps, NDManager scope) {
        List<Row> rows = new ArrayList<>();
        for (Share share : shares) {
            for (int i = 0; i < share.slots.length; i++) {
                rows.add(new Row(share, i, rows.size()));
            }
        }
        groups =
                rows.stream()
                        .collect(
                                Collectors.groupingBy(
                                        Row::group, LinkedHashMap::new, Collectors.toList()))
                        .values()
                        .stream()
                        .map(of -> group(of, ofSlots, numSteps, scope))
                        .toList();
    }

    private static Group group(List<Row> rows, boolean ofSlots, int numSteps, NDManager scope) {
        List<TopP.Row> topP = rows.stream().flatMap(Row::topP).toList();
        Sampler sampler =
                topP.isEmpty()
                        ? rows.getFirst().share().sampler
                        : TopP.together(topP, numSteps, scope);
        NDIndex slots = index(rows.stream().mapToLong(Row::slot), scope);
        NDIndex ofLogits = ofSlots ? slots : index(rows.stream().mapToLong(Row::position), scope);
        return new Group(sampler, ofLogits, slots);
    }

    private static NDIndex index(LongStream of, NDManager scope) {
        return new NDIndex("{}", scope.create(of.toArray()));
    }

    /**
     * Chooses the next token of each row.
     *
     * @param logits FLOAT32 [N,V]
     * @param last INT64 [slots], in which those of the rows are replaced
     */
    void next(NDArray logits, NDArray last) {
        for (Group group : groups) {
            last.set(group.slots(), group.sampler().next(logits.get(group.rows())));
        }
    }
}
