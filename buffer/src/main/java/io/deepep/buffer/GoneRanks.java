package io.deepep.buffer;

import io.deepep.Communicator;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.error.Departure;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.List;

/**
 * Tells the kernels of one rank which others its group knows to be gone, in host memory that they
 * read while they wait: i32 [R], 1 + the rank because of which one will not come, or 0.
 */
final class GoneRanks implements AutoCloseable {
    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

    private final KnownDepartures known;
    private final PinnedSlots.Slot slot;
    private Runnable forget = () -> {};

    /** Tells of all that go from now on, and of those that are gone. */
    GoneRanks(CudaContext context, KnownDepartures known) {
        this.known = known;
        this.slot =
                PinnedSlots.ofProcess(context)
                        .take(this, (long) Integer.BYTES * known.communicator().size(), null);
        slot.memory().fill((byte) 0);
        follow();
    }

    /** From now on, tells of the group that the rank is in now. */
    void follow() {
        forget.run();
        forget = known.communicator().onDeparture(this::update);
        update();
    }

    /** Where the GPU finds them. */
    long deviceAddress() {
        return slot.deviceAddress();
    }

    /** Writes down who is known to be gone now. */
    synchronized void update() {
        Communicator communicator = known.communicator();
        List<Departure> departures = known.list();
        MemorySegment ranks = slot.memory();
        for (int peer = 0; peer < communicator.size(); peer++) {
            int blamed =
                    Departure.culprit(departures, communicator.rank(), peer)
                            .map(Departure::rank)
                            .orElse(-1);
            // release; pairs with the acquire in go_on
            INT.setRelease(ranks, (long) Integer.BYTES * peer, 1 + blamed);
        }
    }

    /** Once no kernel of the rank runs. */
    @Override
    public void close() {
        forget.run();
    }
}
