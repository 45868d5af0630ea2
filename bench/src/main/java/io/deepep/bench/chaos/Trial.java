package io.deepep.bench.chaos;

import io.deepep.bench.text.Names;
import io.deepep.planner.Mode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.random.RandomGenerator;
import java.util.random.RandomGeneratorFactory;

/**
 * One disturbance of one run of rounds, the same wherever it is drawn from the same seed.
 *
 * @param seed of its random inputs
 * @param victim the rank that is disturbed, or -1 for a run in which nothing happens
 * @param round in which it happens, of those from 0 to {@link #ROUNDS} - 1
 * @param delayMicros from the beginning of the moment, for what strikes from outside
 */
record Trial(
        long seed,
        Mode mode,
        RankKind model,
        Action action,
        Moment moment,
        int victim,
        int round,
        int delayMicros) {
    /** Verified rounds of a run that nothing ends. */
    static final int ROUNDS = 4;

    /** About as long as the longest phase of the small shapes of these runs. */
    private static final int LONGEST_DELAY_MICROS = 2000;

    /** A run that nothing disturbs. */
    static Trial quiet(long seed, Mode mode, RankKind model) {
        return new Trial(seed, mode, model, Action.SLOW, Moment.JOIN, -1, 0, 0);
    }

    /** A run after it that nothing disturbs. */
    Trial after() {
        return quiet(seed + ROUNDS, mode, model);
    }

    /**
     * The trials of a command: every combination in turn that fits, with everything else random.
     *
     * @param seed of all of them
     */
    static List<Trial> draw(
            long seed,
            int number,
            int numRanks,
            List<Mode> modes,
            List<RankKind> models,
            List<Action> actions) {
        List<Trial> kinds = new ArrayList<>();
        for (RankKind model : models) {
            for (Action action : actions) {
                for (Moment moment : Moment.values()) {
                    if (fits(model, action, moment)) {
                        modes.forEach(mode -> kinds.add(kind(mode, model, action, moment)));
                    }
                }
            }
        }
        RandomGenerator random = RandomGeneratorFactory.of("L64X128MixRandom").create(seed);
        List<Trial> trials = new ArrayList<>();
        for (int i = 0; i < number && !kinds.isEmpty(); i++) {
            // Each pass in another order, so that a short run is no prefix of the same few.
            if (i % kinds.size() == 0) {
                Collections.shuffle(kinds, random);
            }
            trials.add(kinds.get(i % kinds.size()).with(random, numRanks));
        }
        return trials;
    }

    private static boolean fits(RankKind model, Action action, Moment moment) {
        // Threads join by being started, and what is done by the victim's own code has no "while".
        return action.fits(model)
                && !(model == RankKind.THREADS && moment == Moment.JOIN)
                && !(action == Action.SLOW && moment == Moment.JOIN);
    }

    private static Trial kind(Mode mode, RankKind model, Action action, Moment moment) {
        return new Trial(0, mode, model, action, moment, 0, 0, 0);
    }

    private Trial with(RandomGenerator random, int numRanks) {
        return new Trial(
                random.nextLong(),
                mode,
                model,
                action,
                moment,
                random.nextInt(numRanks),
                random.nextInt(ROUNDS),
                random.nextInt(LONGEST_DELAY_MICROS));
    }

    /** Whether the victim finds the port taken at which it is to meet the others. */
    boolean starvesPort() {
        return action == Action.STARVE && moment == Moment.JOIN && victim == 0;
    }

    /** Whether a new rank can take the place of the victim while the others have buffers open. */
    boolean allowsReplacement() {
        return victim >= 0
                && action == Action.KILL
                && (moment == Moment.DISPATCH
                        || moment == Moment.BETWEEN
                        || moment == Moment.COMBINE);
    }

    /** Mode, model, action and moment in words. */
    String kind() {
        return "%s %s %s %s"
                .formatted(Names.of(mode), Names.of(model), Names.of(action), Names.of(moment));
    }
}
