package io.deepep.normal.cuda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.PinnedMemory;
import java.lang.ref.Cleaner;
import java.util.ArrayList;
import java.util.List;

/**
 * Equal pieces of mapped host memory for operations. A piece comes back when its operation is
 * collected.
 */
final class PinnedSlots implements AutoCloseable {
    private static final int SLOTS_PER_PAGE = 64;
    private static final Cleaner CLEANER = Cleaner.create();

    /** A piece of a page. */
    record Slot(PinnedMemory page, long offset) {}

    private final CudaContext context;
    private final long slotBytes;
    private final List<PinnedMemory> pages = new ArrayList<>();
    private final List<Slot> free = new ArrayList<>();

    PinnedSlots(CudaContext context, long slotBytes) {
        this.context = context;
        this.slotBytes = slotBytes;
    }

    /** A piece for as long as {@code owner} is reachable. */
    Slot take(Object owner) {
        Slot slot = takeFree();
        CLEANER.register(owner, () -> giveBack(slot));
        return slot;
    }

    private synchronized Slot takeFree() {
        if (free.isEmpty()) {
            PinnedMemory page = PinnedMemory.allocate(context, SLOTS_PER_PAGE * slotBytes);
            pages.add(page);
            for (int i = 0; i < SLOTS_PER_PAGE; i++) {
                free.add(new Slot(page, i * slotBytes));
            }
        }
        return free.removeLast();
    }

    private synchronized void giveBack(Slot slot) {
        free.add(slot);
    }

    @Override
    public synchronized void close() {
        pages.forEach(PinnedMemory::close);
    }
}
