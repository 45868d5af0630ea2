package io.deepep.cuda.memory;

import io.deepep.spi.Undo;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * What the driver maps once, for all ranks of this process that want it: mapped for the first of
 * them, and given back with the last.
 *
 * <p>One lock for all, held while the driver works: who asks for what is just being mapped waits.
 *
 * @param <K> by which it is known
 * @param <V> what is given back
 */
final class SharedMappings<K, V> {
    private record Mapping<V>(V mapped, int numUsers) {}

    private final Consumer<V> giveBack;
    private final Map<K, Mapping<V>> mappings = new HashMap<>();

    SharedMappings(Consumer<V> giveBack) {
        this.giveBack = giveBack;
    }

    /**
     * Where a user finds it. Every call is paired with one of {@link #close}, unless it throws.
     *
     * @param prepare makes the user's context current. Not before: a virtual thread that has waited
     *     for others may have another carrier
     * @param map for the first user
     * @param find for every user
     */
    synchronized <R> R open(Runnable prepare, K key, Supplier<V> map, Function<V, R> find) {
        prepare.run();
        Mapping<V> known = mappings.get(key);
        try (Undo made = new Undo()) {
            V mapped = known == null ? made.made(map.get(), giveBack) : known.mapped();
            R found = find.apply(mapped);
            mappings.put(key, new Mapping<>(mapped, known == null ? 1 : known.numUsers() + 1));
            made.forget();
            return found;
        }
    }

    /**
     * One user less.
     *
     * @param prepare as for {@link #open}
     */
    synchronized void close(Runnable prepare, K key) {
        prepare.run();
        Mapping<V> mapping = mappings.remove(key);
        if (mapping.numUsers() > 1) {
            mappings.put(key, new Mapping<>(mapping.mapped(), mapping.numUsers() - 1));
        } else {
            giveBack.accept(mapping.mapped());
        }
    }
}
