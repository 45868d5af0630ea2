package io.deepep.testkit.conformance;

import io.deepep.Graph;
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
