package io.deepep.testkit.conformance;

import io.deepep.Graph;
import io.deepep.Stream;
import java.util.List;

/**
 * Calls of one rank over the same memory, whatever exchange it holds: made as they are, or captured
 * once and replayed.
 *
 * @param <W> an exchange
 */
public interface RepeatedCalls<W> {
    /** Makes the calls. Results are kept for two of each kind. */
    void enqueue();

    /** Writes another exchange over this one. */
    void load(W world);

    /** Waits for the results, and compares them. */
    void verify();

    /** Makes the calls until everything is prepared that can be. */
    default void prepare() {
        for (int i = 0; i < 2; i++) {
            enqueue();
            verify();
        }
    }

    /** Captures the calls, which have been prepared: all ranks together. */
    default Graph capture(RankContext context, Stream stream) {
        Graph graph = Graph.capture(stream, this::enqueue);
        context.meet();
        return graph;
    }

    /**
     * Captures the calls after one whose end nobody asks for, and replays them; then makes them.
     */
    default void replayOnce(RankContext context) {
        prepare();
        enqueue();
        try (Graph graph = capture(context, context.buffer().communicationStream())) {
            graph.replay();
            verify();
        }
        prepare();
    }

    /** Replays the calls with another exchange. */
    default void replay(Graph graph, W world) {
        load(world);
        graph.replay();
        verify();
    }

    /** Replays the calls so often, with one exchange after the other. */
    default void replay(Graph graph, List<W> worlds, int times) {
        for (int i = 1; i <= times; i++) {
            replay(graph, worlds.get(i % worlds.size()));
        }
    }
}
