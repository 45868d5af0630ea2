package io.deepep.testkit.conformance;

import static io.deepep.testkit.conformance.Misbehaviour.BRIEF;
import static io.deepep.testkit.conformance.Misbehaviour.SHORT;
import static io.deepep.testkit.conformance.Ranks.TIMEOUT;

import io.deepep.Buffer;
import io.deepep.EpTopology;
import io.deepep.Plan;
import io.deepep.testkit.TestBackend;
import java.time.Duration;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/**
 * Time-outs of single calls, longer and shorter than those of their buffer; and of their start.
 *
 * @param <R> one rank's share of an exchange
 */
public interface TimeoutCases<R extends ExchangeRank<?, ?>> {
    TestBackend backend();

    /** The shape of the exchange of a group. */
    ExchangeShape<?, R> shape(EpTopology topology);

    /** Makes calls with these options, to each of which one rank comes late. */
    void withOneLate(R rank, Consumer<Plan.Builder<?>> options);

    /** Calls with some options that one rank stays away from, each with buffers of its own. */
    List<BiConsumer<R, Consumer<Plan.Builder<?>>>> withoutOne();

    private void late(
            int nodes,
            int ranksPerNode,
            Consumer<Buffer.Builder> ofBuffers,
            Consumer<Plan.Builder<?>> ofPlans) {
        ExchangeShape<?, R> shape = shape(Ranks.topology(nodes, ranksPerNode));
        shape.run(
                backend(),
                builder -> ofBuffers.accept(builder.timeout(BRIEF)),
                context -> withOneLate(shape.rank(context), ofPlans));
    }

    private void away(int nodes, int ranksPerNode, Consumer<Plan.Builder<?>> ofPlans) {
        ExchangeShape<?, R> shape = shape(Ranks.topology(nodes, ranksPerNode));
        for (BiConsumer<R, Consumer<Plan.Builder<?>>> call : withoutOne()) {
            shape.run(
                    backend(),
                    builder -> builder.timeout(Duration.ofHours(1)),
                    context -> call.accept(shape.rank(context), ofPlans));
        }
    }

    /** A rank that is late by less than the call's time-out changes nothing. */
    @Cases({"1, 4", "2, 2"})
    default void longerThanTheBuffers(int nodes, int ranksPerNode) {
        late(nodes, ranksPerNode, _ -> {}, plan -> plan.timeout(TIMEOUT));
    }

    /** A rank that begins later than after the time-out, but within that of the start. */
    @Cases({"1, 4", "2, 2", "3, 1"})
    default void startsLate(int nodes, int ranksPerNode) {
        late(nodes, ranksPerNode, builder -> builder.startTimeout(TIMEOUT), _ -> {});
    }

    /** The same where plans say it, and the ranks that are waited for in vain would be masked. */
    @Cases({"1, 4", "2, 2"})
    default void startsOfPlansAreLate(int nodes, int ranksPerNode) {
        late(
                nodes,
                ranksPerNode,
                builder -> builder.maskTimedOutRanks(true),
                plan -> plan.startTimeout(TIMEOUT));
    }

    /** Who stays away is named after the call's time-out, whatever the buffer's. */
    @Cases({"1, 4", "2, 2"})
    default void shorterThanTheBuffers(int nodes, int ranksPerNode) {
        away(nodes, ranksPerNode, plan -> plan.timeout(SHORT));
    }

    /** Who never begins is named after the start time-out, be the time-out shorter or longer. */
    @Cases({"1, 4", "2, 2"})
    default void neverStarts(int nodes, int ranksPerNode) {
        Duration shorter = SHORT.dividedBy(3);
        away(nodes, ranksPerNode, plan -> plan.startTimeout(SHORT));
        away(nodes, ranksPerNode, plan -> plan.timeout(shorter).startTimeout(SHORT));
    }
}
