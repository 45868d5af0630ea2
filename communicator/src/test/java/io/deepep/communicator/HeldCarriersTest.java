package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Ranks of an engine whose virtual threads wait in foreign calls go on talking. */
@Isolated("no other virtual thread of this JVM runs meanwhile")
class HeldCarriersTest {
    @Test
    void aGroupOpensExchangesAndCloses() throws Exception {
        try (Holder holder = new Holder()) {
            holder.holdAll();
            assertThat(holder.virtualThreadRuns()).isFalse();
            List<ProcessCommunicator> group = Groups.open(2);
            List<List<byte[]>> gathered =
                    Groups.each(
                            2,
                            rank ->
                                    group.get(rank)
                                            .allGather(new byte[] {(byte) rank}, Groups.LONG));
            assertThat(gathered.get(1)).containsExactly(new byte[] {0}, new byte[] {1});
            byte[] large = new byte[200_000];
            Groups.each(2, rank -> group.get(rank).allGather(large, Groups.LONG));
            Groups.closeAll(group);
            assertThat(holder.virtualThreadRuns()).isFalse();
        }
    }

    /** Virtual threads that wait beneath a foreign frame, and so keep their carriers. */
    @SuppressWarnings("restricted") // qsort is given what it expects
    private static final class Holder implements AutoCloseable {
        private static final Linker LINKER = Linker.nativeLinker();

        private final CountDownLatch released = new CountDownLatch(1);
        private final Semaphore holding = new Semaphore(0);

        void holdAll() throws InterruptedException {
            int numCarriers = Runtime.getRuntime().availableProcessors();
            for (int i = 0; i < numCarriers; i++) {
                Thread.startVirtualThread(this::hold);
            }
            assertThat(holding.tryAcquire(numCarriers, 60, TimeUnit.SECONDS)).isTrue();
        }

        boolean virtualThreadRuns() throws InterruptedException {
            Semaphore ran = new Semaphore(0);
            Thread.startVirtualThread(ran::release);
            return ran.tryAcquire(100, TimeUnit.MILLISECONDS);
        }

        private void hold() {
            try (Arena arena = Arena.ofConfined()) {
                MethodHandle compare =
                        MethodHandles.publicLookup()
                                .findVirtual(
                                        Comparator.class,
                                        "compare",
                                        MethodType.methodType(
                                                int.class, Object.class, Object.class))
                                .bindTo((Comparator<Object>) (_, _) -> await())
                                .asType(
                                        MethodType.methodType(
                                                int.class,
                                                MemorySegment.class,
                                                MemorySegment.class));
                MemorySegment stub =
                        LINKER.upcallStub(
                                compare,
                                FunctionDescriptor.of(
                                        ValueLayout.JAVA_INT,
                                        ValueLayout.ADDRESS,
                                        ValueLayout.ADDRESS),
                                arena);
                MethodHandle qsort =
                        LINKER.downcallHandle(
                                LINKER.defaultLookup().findOrThrow("qsort"),
                                FunctionDescriptor.ofVoid(
                                        ValueLayout.ADDRESS,
                                        ValueLayout.JAVA_LONG,
                                        ValueLayout.JAVA_LONG,
                                        ValueLayout.ADDRESS));
                qsort.invokeExact(arena.allocate(2), 2L, 1L, stub);
            } catch (Throwable failure) {
                throw new IllegalStateException(failure);
            }
        }

        private int await() {
            holding.release();
            try {
                released.await();
            } catch (InterruptedException impossible) {
                throw new AssertionError(impossible);
            }
            return 0;
        }

        @Override
        public void close() {
            released.countDown();
        }
    }
}
