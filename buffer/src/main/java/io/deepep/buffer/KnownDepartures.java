package io.deepep.buffer;

import io.deepep.Communicator;
import io.deepep.error.Departure;
import java.util.List;
import java.util.function.IntPredicate;

/** The ranks that the group knows to be gone, without those that this rank has masked. */
final class KnownDepartures {
    private volatile Communicator communicator;
    private volatile IntPredicate masked = rank -> false;

    KnownDepartures(Communicator communicator) {
        this.communicator = communicator;
    }

    /** The group that the rank is in. */
    Communicator communicator() {
        return communicator;
    }

    /** The rank is in another group from here on. */
    void moveTo(Communicator group) {
        communicator = group;
    }

    /** Has ranks be left out, by a predicate that is asked each time. */
    void leaveOut(IntPredicate ranks) {
        masked = ranks;
    }

    /** {@link Communicator#departures} of the others, which no longer blame those. */
    List<Departure> list() {
        List<Departure> all = communicator.departures();
        return all.isEmpty()
                ? all
                : all.stream()
                        .filter(gone -> !masked.test(gone.rank()))
                        .map(gone -> masked.test(gone.blamed()) ? blamingItself(gone) : gone)
                        .toList();
    }

    private static Departure blamingItself(Departure gone) {
        return new Departure(gone.rank(), gone.reason(), gone.isOrderly(), gone.rank());
    }
}
