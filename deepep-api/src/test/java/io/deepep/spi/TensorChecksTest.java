package io.deepep.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.DType;
import io.deepep.Device;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class TensorChecksTest {
    /** Found while a call runs, it would leave the other ranks waiting. */
    @Test
    void memoryThatIsGoneIsRefusedBeforeAnythingStarts() {
        TensorChecks checks = new TensorChecks(Device.host());
        Tensor x;
        try (Arena arena = Arena.ofShared()) {
            x = Tensor.allocate(arena, DType.F32, 4);
            checks.require("x", x, DType.F32, 4);
        }
        assertThatThrownBy(() -> checks.require("x", x, DType.F32, 4))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("x is F32[4] on host but its arena is closed");
    }

    @Test
    void memoryOfAnotherThreadIsRefused() throws InterruptedException {
        AtomicReference<Tensor> theirs = new AtomicReference<>();
        CountDownLatch made = new CountDownLatch(1);
        CountDownLatch over = new CountDownLatch(1);
        Thread owner =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    try (Arena arena = Arena.ofConfined()) {
                                        theirs.set(Tensor.allocate(arena, DType.F32, 4));
                                        made.countDown();
                                        over.await();
                                    } catch (InterruptedException e) {
                                        Thread.currentThread().interrupt();
                                    }
                                });
        made.await();
        assertThatThrownBy(() -> TensorChecks.requireUsable("x", theirs.get()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("x is F32[4] on host in a confined arena of another thread");
        over.countDown();
        owner.join();
    }

    @Test
    void whatCannotBeWrittenIsRefused() {
        MemorySegment memory = Arena.ofAuto().allocate(64, 8);
        TensorChecks.requireWritable("out", Tensor.of(memory, DType.F32, 4, 4));
        TensorChecks.requireWritable("out", Tensor.of(memory, DType.F32, 1, 4));
        TensorChecks.requireWritable(
                "out", Tensor.strided(memory, DType.F32, new long[] {2, 4}, new long[] {8, 1}));
        assertThatThrownBy(
                        () ->
                                TensorChecks.requireWritable(
                                        "out", Tensor.of(memory.asReadOnly(), DType.F32, 4)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("out is F32[4] on host in read-only memory");
        for (long stride : new long[] {0, 1, 3}) {
            assertThatThrownBy(
                            () ->
                                    TensorChecks.requireWritable(
                                            "out",
                                            Tensor.strided(
                                                    memory,
                                                    DType.F32,
                                                    new long[] {2, 4},
                                                    new long[] {stride, 1})))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("elements overlap");
        }
    }

    /** Rows that share memory would overwrite each other. */
    @Test
    void ofWhatCanBeWrittenNoTwoElementsShareAnAddress() {
        MemorySegment memory = Arena.ofAuto().allocate(256, 4);
        int numWritable = 0;
        for (int bits = 0; bits < 1 << 15; bits++) {
            long[] shape = {1 + (bits & 3), 1 + (bits >> 2 & 3), 1 + (bits >> 4 & 3)};
            long[] strides = {bits >> 6 & 7, bits >> 9 & 7, bits >> 12 & 7};
            Tensor tensor = Tensor.strided(memory, DType.F32, shape, strides);
            if (isWritable(tensor)) {
                numWritable++;
                assertThat(addresses(tensor)).as("%s", tensor).doesNotHaveDuplicates();
            }
        }
        assertThat(numWritable).isPositive();
        TensorChecks.requireWritable(
                "a view of columns",
                Tensor.strided(memory, DType.F32, new long[] {2, 3, 4}, new long[] {30, 8, 1}));
        TensorChecks.requireWritable(
                "one of each",
                Tensor.strided(memory, DType.F32, new long[] {1, 1, 4}, new long[] {0, 0, 1}));
    }

    private static boolean isWritable(Tensor tensor) {
        try {
            TensorChecks.requireWritable("out", tensor);
            return true;
        } catch (IllegalArgumentException overlapping) {
            return false;
        }
    }

    private static List<Long> addresses(Tensor tensor) {
        List<Long> all = new ArrayList<>();
        for (long i = 0; i < tensor.size(0); i++) {
            for (long j = 0; j < tensor.size(1); j++) {
                for (long k = 0; k < tensor.size(2); k++) {
                    all.add(i * tensor.stride(0) + j * tensor.stride(1) + k * tensor.stride(2));
                }
            }
        }
        return all;
    }

    /** Seen on a GPU: such a load costs the process its context. */
    @Test
    void aGpuIsGivenNoAddressInTheMiddleOfAnElement() {
        Device gpu = Device.cuda(0);
        TensorChecks checks = new TensorChecks(gpu);
        long[] shape = {4};
        long[] strides = {1};
        checks.require("x", Tensor.onDevice(gpu, 2, 8, DType.BF16, shape, strides), DType.BF16, 4);
        Tensor topkIdx = Tensor.onDevice(gpu, 12, 32, DType.I64, shape, strides);
        assertThatThrownBy(() -> checks.require("topkIdx", topkIdx, DType.I64, 4))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("address 0xc, which is not a multiple of 8 bytes");
    }
}
