package io.deepep.cuda.memory;

import io.deepep.Event;
import io.deepep.cuda.CudaContext;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Cleaner;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Pieces of mapped host memory for operations. A piece comes back when its operation is collected,
 * and is given out again when the GPU is done with it. The memory is kept for ever.
 */
public final class PinnedSlots {
    private static final long PAGE_BYTES = 1 << 16;
    private static final long MIN_SLOT_BYTES = 128;
    private static final Cleaner CLEANER = Cleaner.create();

    /**
     * A piece of a page.
     *
     * @param page memory that other pieces lie in too
     * @param offset of the piece in the page, in bytes
     * @param numBytes its size, a power of two
     * @param lastUse the event after which the GPU no longer writes to it
     */
    public record Slot(PinnedMemory page, long offset, long numBytes, Event lastUse) {
        /** Its first byte as the GPU sees it. */
        public long deviceAddress() {
            return page.deviceAddress() + offset;
        }

        /** All of it as Java sees it. */
        public MemorySegment memory() {
            return page.segment().asSlice(offset, numBytes);
        }
    }

    private static final Map<CudaContext, PinnedSlots> OF_PROCESS = new ConcurrentHashMap<>();

    private final CudaContext context;

    /** Free pieces by their size, a power of two. */
    private final Map<Long, ArrayDeque<Slot>> free = new HashMap<>();

    /** Those of a GPU that this process keeps: to free such memory is to wait for every kernel. */
    public static PinnedSlots ofProcess(CudaContext context) {
        return OF_PROCESS.computeIfAbsent(
                CudaContext.shared(context.cudaDevice()), PinnedSlots::new);
    }

    private PinnedSlots(CudaContext context) {
        this.context = context;
    }

    /**
     * A piece of at least {@code numBytes}, for as long as {@code owner} is reachable and until
     * {@code lastUse} after that, which must not reach {@code owner}.
     */
    public Slot take(Object owner, long numBytes, Event lastUse) {
        Slot found = takeFree(Math.max(Long.highestOneBit(2 * numBytes - 1), MIN_SLOT_BYTES));
        Slot slot = new Slot(found.page(), found.offset(), found.numBytes(), lastUse);
        CLEANER.register(owner, () -> giveBack(slot));
        return slot;
    }

    private synchronized Slot takeFree(long numBytes) {
        ArrayDeque<Slot> slots = free.computeIfAbsent(numBytes, _ -> new ArrayDeque<>());
        for (int i = slots.size(); i > 0; i--) {
            Slot oldest = slots.removeFirst();
            if (oldest.lastUse() == null || oldest.lastUse().isDone()) {
                return oldest;
            }
            slots.addLast(oldest);
        }
        long pageBytes = Math.max(PAGE_BYTES, numBytes);
        PinnedMemory page = PinnedMemory.allocate(context, pageBytes);
        for (long offset = 0; offset < pageBytes; offset += numBytes) {
            slots.addLast(new Slot(page, offset, numBytes, null));
        }
        return slots.removeFirst();
    }

    private synchronized void giveBack(Slot slot) {
        free.get(slot.numBytes()).addLast(slot);
    }
}
